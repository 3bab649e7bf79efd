"""Removing environments that nothing wants any more; what a run uses is kept."""

from __future__ import annotations

import shutil
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from conformance.cells.disk import disk_bytes, list_environments, measure_usage, own_bytes
from conformance.cells.environment_facts import drop_facts
from conformance.cells.environment_locks import lock_unused, remove_marks
from conformance.cells.lock import read_lock
from conformance.errors import InfrastructureError
from conformance.files import describe_os_error

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence
    from pathlib import Path

    from conformance.cells.disk import StoredEnvironment

DAY: Final = 86_400.0
IN_USE: Final = "in use"


@dataclass(frozen=True, slots=True, kw_only=True)
class Removal:
    """An environment that is removed, or would be.

    Attributes:
        environment: The environment.
        reason: Why nothing wants it.
        kept: Why it stays all the same, empty when it goes.
    """

    environment: StoredEnvironment
    reason: str
    kept: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PruneResult:
    """The result of pruning.

    Attributes:
        removals: The environments.
        freed: Bytes on disk that it freed.
        linked: Bytes on disk that it did not free: the package cache, or an environment that
            stays, holds them too.
    """

    removals: tuple[Removal, ...]
    freed: int
    linked: int


def collect_lock_hashes(folders: Iterable[Path], cache: Path) -> dict[str, set[str]]:
    """Return the hashes of the locks there are, by the environment they are for.

    Args:
        folders: Matrix folders, for the locks committed in them.
        cache: Cache folder, for those resolved here.

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
    locks: dict[str, set[str]],
    wanted: Collection[str],
    before: float | None = None,
) -> str:
    """Return why nothing wants an environment, empty when something does.

    Args:
        environment: The environment.
        locks: Hashes of the locks there are, see `collect_lock_hashes`.
        wanted: Environments of the cells of every matrix, as `Cell.env_id` spells them.
        before: When it must have been used last for time to speak against it.
    """
    if not environment.lock:
        return "it is not finished"
    if environment.lock not in locks.get(environment.env_id, ()):
        return "its lock is no more"
    if environment.env_id not in wanted:
        return "no matrix has a cell of it"
    if before is not None and environment.used < before:
        return f"not used for {int((time.time() - environment.used) / DAY)} days"
    return ""


def prune(candidates: Sequence[Removal], *, dry_run: bool = False) -> PruneResult:
    """Remove environments, but those that a run uses.

    Args:
        candidates: What to remove.
        dry_run: Whether to say only what would be.

    Raises:
        InfrastructureError: If one cannot be removed.
    """
    removals, usages = [], []
    for candidate in candidates:
        folder = candidate.environment.folder
        try:
            with lock_unused(folder) as free:
                kept = "" if free else IN_USE
                if free:
                    usages.append(measure_usage(folder))
                if free and not dry_run:
                    drop_facts(folder)  # first: what is left half removed is never used
                    shutil.rmtree(folder)
                    remove_marks(folder)
        except OSError as error:
            raise InfrastructureError(
                f"{folder}: cannot be removed: {describe_os_error(error)}"
            ) from error
        removals.append(
            Removal(environment=candidate.environment, reason=candidate.reason, kept=kept)
        )
    freed = own_bytes(usages)
    linked = disk_bytes(usages) - freed
    return PruneResult(removals=tuple(removals), freed=freed, linked=linked)


def candidates(
    cache: Path,
    *,
    locks: dict[str, set[str]],
    wanted: Collection[str],
    unused_days: float | None = None,
) -> list[Removal]:
    """Return the environments in a cache that nothing wants, by name; see `find_removal_reason`.

    Args:
        cache: Cache folder.
        locks: Hashes of the locks there are.
        wanted: Environments of the cells of every matrix.
        unused_days: Days after which an environment that was not used goes too.
    """
    before = None if unused_days is None else time.time() - unused_days * DAY
    found = []
    for environment in list_environments(cache):
        reason = find_removal_reason(environment, locks=locks, wanted=wanted, before=before)
        if reason:
            found.append(Removal(environment=environment, reason=reason))
    return found
