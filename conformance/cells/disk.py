"""Disk usage of environments, and pruning of those that are no longer needed."""

from __future__ import annotations

import os
import shutil
import time
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from conformance.cells.environment_locks import lock_unused, remove_marks
from conformance.cells.lock import read_lock
from conformance.cells.stored_environments import (
    ENVIRONMENTS,
    list_environments,
    read_facts,
    remove_facts,
)
from conformance.errors import InfrastructureError
from conformance.files import describe_os_error

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from conformance.cells.cell import Cell
    from conformance.cells.stored_environments import StoredEnvironment

BLOCK: Final = 512
"""Unit of `st_blocks` in bytes, on every file system."""
GUESSES: Final = {"": 0.6, "tpu": 1.3, "cuda": 1.2, "gpu": 6.0}
"""Size of an environment in GB by kind, used until one of the kind exists."""
DAY: Final = 86_400.0
IN_USE: Final = "in use"
_GB: Final = 1e9
_MB: Final = 1e6
_SMALLEST_IN_GB: Final = 0.1 * _GB


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """The disk usage of a folder.

    Attributes:
        apparent: Sum of the sizes of its files, in bytes.
        names: Number of names within the folder, by device and inode. uv links files from the
            package cache instead of copying them, so a file may have names elsewhere too.
        sizes: Bytes on disk and number of links, by device and inode.
    """

    apparent: int
    names: Counter[tuple[int, int]]
    sizes: Mapping[tuple[int, int], tuple[int, int]]

    @property
    def own(self) -> int:
        """Bytes on disk that are freed if the folder is removed."""
        return count_own_bytes([self])


def measure_usage(folder: Path) -> Usage:
    """Return the disk usage of a folder; files that vanish in the meantime are ignored."""
    apparent = 0
    names: Counter[tuple[int, int]] = Counter()
    sizes = {}
    for stat in _stat_files(str(folder)):
        apparent += stat.st_size
        inode = (stat.st_dev, stat.st_ino)
        names[inode] += 1
        sizes[inode] = (stat.st_blocks * BLOCK, stat.st_nlink)
    return Usage(apparent=apparent, names=names, sizes=sizes)


def _stat_files(folder: str) -> Iterator[os.stat_result]:
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    yield from _stat_files(entry.path)
                else:
                    yield entry.stat(follow_symlinks=False)
    except OSError:
        return


def count_own_bytes(usages: Iterable[Usage]) -> int:
    """Return the bytes on disk that are freed if all the folders are removed."""
    names: Counter[tuple[int, int]] = Counter()
    sizes: dict[tuple[int, int], tuple[int, int]] = {}
    for usage in usages:
        names.update(usage.names)
        sizes.update(usage.sizes)
    # A file is freed with its last name. `>=`, because names may be removed between two calls of
    # stat.
    return sum(size for inode, (size, links) in sizes.items() if names[inode] >= links)


def count_disk_bytes(usages: Iterable[Usage]) -> int:
    """Return the bytes on disk of all the folders, each file counted once."""
    sizes: dict[tuple[int, int], tuple[int, int]] = {}
    for usage in usages:
        sizes.update(usage.sizes)
    return sum(size for size, _ in sizes.values())


def find_room_problem(cell: Cell, cache: Path, *, free: int | None = None) -> str:
    """Return why there is not enough disk space for a cell's environment, empty if there is.

    Args:
        cell: Cell whose environment is to be created.
        cache: Cache folder, with a folder of environments.
        free: Free bytes; by default those of the disk.
    """
    needed = estimate_size(cell, cache)
    # Of the folder itself, which may be a mount or a link to another disk than the cache.
    free = shutil.disk_usage(cache / ENVIRONMENTS).free if free is None else free
    if free >= needed:
        return ""
    return (
        f"{cell.id}: its environment takes up to {format_bytes(needed)}, {cache} has "
        f"{format_bytes(free)} free; free some with: conformance cache prune, or set "
        "CONFORMANCE_CACHE to a folder with more room"
    )


def estimate_size(cell: Cell, cache: Path) -> int:
    """Return the size of the largest environment of a cell's kind in bytes, or a guess."""
    kind = cell.place.packages
    known = [
        facts.bytes
        for stored in list_environments(cache)
        if get_environment_kind(stored.env_id) == kind
        and (facts := read_facts(stored.folder)) is not None
    ]
    # 0 if no environment was measured: the facts of older versions have no size.
    return max(known, default=0) or int(GUESSES.get(kind, max(GUESSES.values())) * _GB)


def get_environment_kind(env_id: str) -> str:
    """Return the platform packages of an environment: `tpu`, `cuda`, `gpu` or empty."""
    factors = env_id.split("-")
    return next((kind for kind in GUESSES if kind and kind in factors), "")


def format_bytes(count: int) -> str:
    """Return a number of bytes in GB, or in MB if it is small."""
    in_gb = count >= _SMALLEST_IN_GB
    return f"{count / _GB:.1f} GB" if in_gb else f"{count / _MB:.1f} MB"


@dataclass(frozen=True, slots=True, kw_only=True)
class Removal:
    """The removal of an environment, done or planned.

    Attributes:
        environment: Environment to remove.
        reason: Why it is not needed.
        problem: Why it was not removed, empty if it was.
    """

    environment: StoredEnvironment
    reason: str
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PruneResult:
    """The result of pruning.

    Attributes:
        removals: Environments that were not needed.
        freed: Bytes on disk that were freed.
        linked: Bytes on disk that were not freed, because the package cache or a remaining
            environment has the same files.
    """

    removals: tuple[Removal, ...]
    freed: int
    linked: int


def collect_lock_hashes(folders: Iterable[Path], cache: Path) -> dict[str, set[str]]:
    """Return the hashes of all locks, by environment.

    Args:
        folders: Matrix folders, with committed locks.
        cache: Cache folder, with resolved locks.

    Raises:
        InfrastructureError: If a lock cannot be read.
    """
    found: dict[str, set[str]] = {}
    for folder in (*folders, cache):
        for file in sorted((folder / "locks").glob("*.txt")):
            lock = read_lock(file)
            if lock is not None:
                found.setdefault(file.stem, set()).add(lock.hash)
    return found


def find_removal_reason(
    environment: StoredEnvironment,
    *,
    locks: Mapping[str, set[str]],
    wanted: Collection[str],
    unused_days: float | None = None,
) -> str:
    """Return why an environment is not needed, empty if it is.

    Args:
        environment: Environment in the cache.
        locks: Hashes of all locks, see `collect_lock_hashes`.
        wanted: Environments of the cells of every matrix, as `Cell.env_id`.
        unused_days: Days after which an unused environment is not needed.
    """
    if not environment.lock:
        return "it is not finished"
    if environment.lock not in locks.get(environment.env_id, ()):
        return "its lock no longer exists"
    # A lock is not enough: the cache keeps those of cells that were run once with --cell.
    if environment.env_id not in wanted:
        return "no matrix has a cell of it"
    days = (time.time() - environment.used) / DAY
    if unused_days is not None and days > unused_days:
        return f"not used for {int(days)} days"
    return ""


def find_unneeded(
    cache: Path,
    *,
    locks: Mapping[str, set[str]],
    wanted: Collection[str],
    unused_days: float | None = None,
) -> list[Removal]:
    """Return the environments in a cache that are not needed, by name.

    Args:
        cache: Cache folder.
        locks: Hashes of all locks, see `collect_lock_hashes`.
        wanted: Environments of the cells of every matrix, as `Cell.env_id`.
        unused_days: Days after which an unused environment is not needed.
    """
    return [
        Removal(environment=environment, reason=reason)
        for environment in list_environments(cache)
        if (
            reason := find_removal_reason(
                environment, locks=locks, wanted=wanted, unused_days=unused_days
            )
        )
    ]


def prune(candidates: Sequence[Removal], *, dry_run: bool = False) -> PruneResult:
    """Remove environments that no run uses.

    Args:
        candidates: Environments to remove.
        dry_run: Whether to only report what would be removed.

    Raises:
        InfrastructureError: If an environment cannot be removed.
    """
    removals, usages = [], []
    for candidate in candidates:
        folder = candidate.environment.folder
        try:
            # A dry run takes the lock too, so that it reports the same environments as in use.
            with lock_unused(folder) as is_unused:
                if is_unused:
                    usages.append(measure_usage(folder))
                if is_unused and not dry_run:
                    # The facts go first: an environment that is half removed is never used.
                    remove_facts(folder)
                    shutil.rmtree(folder)
                    remove_marks(folder)
        except OSError as error:
            raise InfrastructureError(
                f"{folder}: cannot be removed: {describe_os_error(error)}"
            ) from error
        removals.append(replace(candidate, problem="" if is_unused else IN_USE))
    # Together: a file that several removed environments share is freed only if all of them go.
    freed = count_own_bytes(usages)
    return PruneResult(
        removals=tuple(removals), freed=freed, linked=count_disk_bytes(usages) - freed
    )
