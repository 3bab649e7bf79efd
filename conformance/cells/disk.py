"""Disk usage of environments: in all, and of what nothing else links."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from conformance.cells.environment_facts import FILE_NAME, read_facts
from conformance.cells.environment_locks import last_used
from conformance.errors import InfrastructureError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from conformance.cells.cell import Cell

ENVIRONMENTS: Final = "envs"
BLOCK: Final = 512
"""Unit of `st_blocks`, whatever the file system."""
GUESSES: Final = {"": 0.6, "tpu": 1.3, "cuda": 1.2, "gpu": 6.0}
"""GB that an environment of a kind takes, until one of the kind was made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """The disk usage of a folder.

    Attributes:
        apparent: Sum of the sizes of its files.
        inodes: Bytes on disk, names within the folder, and names anywhere, by inode: files are
            linked, not copied, from the package cache.
    """

    apparent: int
    inodes: Mapping[tuple[int, int], tuple[int, int, int]]

    @property
    def own(self) -> int:
        """Bytes on disk that no name outside of the folder keeps: what removing it frees."""
        return own_bytes([self])


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredEnvironment:
    """An environment in the cache.

    Attributes:
        folder: Where it lies.
        lock: Hash of the lock it was made from; empty when it is not finished.
        used: When it was used last, in seconds since the epoch.
    """

    folder: Path
    lock: str
    used: float

    @property
    def env_id(self) -> str:
        """Id of the environment, as `Cell.env_id` spells it."""
        return self.folder.name.rpartition("-")[0]


def list_environments(cache: Path) -> list[StoredEnvironment]:
    """Return the environments in a cache folder, by name.

    Raises:
        InfrastructureError: If the folder cannot be read.
    """
    folder = cache / ENVIRONMENTS
    try:
        with os.scandir(folder) as entries:
            names = sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))
        return [_describe_environment(folder / name) for name in names]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise InfrastructureError(f"{folder}: cannot be read: {error.strerror}") from error


def measure_usage(folder: Path) -> Usage:
    """Return what a folder takes of the disk; files that vanish meanwhile take nothing."""
    apparent = 0
    inodes: dict[tuple[int, int], tuple[int, int, int]] = {}
    for stat in _files(str(folder)):
        apparent += stat.st_size
        key = (stat.st_dev, stat.st_ino)
        _, names, _ = inodes.get(key, (0, 0, 0))
        inodes[key] = (stat.st_blocks * BLOCK, names + 1, stat.st_nlink)
    return Usage(apparent=apparent, inodes=inodes)


def own_bytes(usages: Iterable[Usage]) -> int:
    """Return the bytes on disk that only these folders together keep."""
    return sum(size for size, names, links in _merge_inodes(usages).values() if names >= links)


def disk_bytes(usages: Iterable[Usage]) -> int:
    """Return the bytes on disk of some folders together, each file once."""
    return sum(size for size, _, _ in _merge_inodes(usages).values())


def find_room_problem(cell: Cell, cache: Path, *, free: int | None = None) -> str:
    """Return why there is no room for a cell's environment, empty when there is.

    Args:
        cell: Cell whose environment is to be made.
        cache: Cache folder, with a folder of environments in it.
        free: Bytes that are free; None looks.
    """
    needed = estimate(cell, cache)
    free = shutil.disk_usage(cache / ENVIRONMENTS).free if free is None else free
    if free >= needed:
        return ""
    return (
        f"{cell.id}: its environment takes up to {gigabytes(needed)}, {cache} has "
        f"{gigabytes(free)} free; free some with: conformance matrix --prune, or set "
        "CONFORMANCE_CACHE to a folder with more room"
    )


def estimate(cell: Cell, cache: Path) -> int:
    """Return the bytes that a cell's environment takes at most, from those of its kind."""
    kind = cell.place.packages
    known = [
        facts.bytes
        for stored in list_environments(cache)
        if kind_of(stored.env_id) == kind and (facts := read_facts(stored.folder)) is not None
    ]
    return max(known, default=0) or int(GUESSES.get(kind, max(GUESSES.values())) * 1e9)


def kind_of(env_id: str) -> str:
    """Return the platform packages that an environment holds: `tpu`, `cuda`, `gpu` or none."""
    factors = env_id.split("-")
    return next((kind for kind in GUESSES if kind and kind in factors), "")


def gigabytes(count: int) -> str:
    """Return a number of bytes in words; small ones in MB."""
    return f"{count / 1e9:.1f} GB" if count >= 1e8 else f"{count / 1e6:.1f} MB"  # noqa: PLR2004


def _describe_environment(folder: Path) -> StoredEnvironment:
    facts = read_facts(folder)
    return StoredEnvironment(
        folder=folder,
        lock=facts.lock if facts is not None else "",
        used=last_used(folder) or _find_modification_time(folder),
    )


def _find_modification_time(folder: Path) -> float:
    for path in (folder / FILE_NAME, folder):
        try:
            return path.stat().st_mtime
        except OSError:
            continue
    return 0.0


def _merge_inodes(usages: Iterable[Usage]) -> dict[tuple[int, int], tuple[int, int, int]]:
    merged: dict[tuple[int, int], tuple[int, int, int]] = {}
    for usage in usages:
        for key, (size, names, links) in usage.inodes.items():
            merged[key] = (size, names + merged.get(key, (0, 0, 0))[1], links)
    return merged


def _files(folder: str) -> Iterator[os.stat_result]:
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    yield from _files(entry.path)
                else:
                    yield entry.stat(follow_symlinks=False)
    except OSError:
        return
