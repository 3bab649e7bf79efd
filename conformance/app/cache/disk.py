"""The disk usage of the cache: its environments, measured and pruned."""

from __future__ import annotations

import shutil
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from rich.text import Text

from conformance.cells.disk import (
    DAY,
    Removal,
    collect_lock_hashes,
    count_disk_bytes,
    count_own_bytes,
    find_removal_reason,
    find_unneeded,
    format_bytes,
    get_environment_kind,
    measure_usage,
    prune,
)
from conformance.cells.environment_locks import read_last_use
from conformance.cells.matrix import list_matrices, load_matrix
from conformance.cells.overlay import LOCKS, OVERLAYS, WHEELS
from conformance.cells.repository import FOLDER as REPOSITORIES
from conformance.cells.source_tree import FOLDER as SOURCES
from conformance.cells.stored_environments import StoredEnvironment, list_environments
from conformance.engine.cache.verdicts import FOLDER as SETTLED
from conformance.laws.launch import CONVERSATIONS
from conformance.suites.catalogue.checkouts import FOLDER as CHECKOUTS
from conformance.suites.catalogue.checkouts import list_checkouts
from conformance.suites.catalogue.definition import find_suites, load_suite
from conformance.wording import plural

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from conformance.app.context import ProjectContext
    from conformance.cells.disk import PruneResult, Usage

ADDITIONAL: Final = (OVERLAYS, LOCKS, WHEELS, REPOSITORIES, SOURCES)
"""Folders of the cache with packages in addition to those of cells, and their sources."""
RESULTS: Final = ("results", SETTLED, "blobs", CONVERSATIONS)
"""Folders of the cache that hold observations of earlier runs, and the examples of laws."""


@dataclass(frozen=True, slots=True)
class _EnvironmentRow:
    environment: StoredEnvironment
    usage: Usage
    unwanted: str

    def make_json(self) -> dict[str, Any]:
        used = datetime.fromtimestamp(self.environment.used, tz=UTC)
        return {
            "environment": self.environment.folder.name,
            "kind": get_environment_kind(self.environment.env_id) or "cpu",
            "apparent": self.usage.apparent,
            "own": self.usage.own,
            "used": f"{used:%Y-%m-%dT%H:%M:%SZ}",
            "unwanted": self.unwanted,
        }


def measure_cache(context: ProjectContext) -> dict[str, Any]:
    """Return the disk space of each environment in the cache, and of the whole cache, for JSON.

    Args:
        context: The project: cache and matrices.
    """
    locks, wanted = (
        collect_lock_hashes(context.matrix_folders, context.cache),
        _collect_wanted_environments(context),
    )
    rows = [
        _EnvironmentRow(
            stored,
            measure_usage(stored.folder),
            find_removal_reason(stored, locks=locks, wanted=wanted),
        )
        for stored in list_environments(context.cache)
    ]
    usages = [row.usage for row in rows]
    return {
        "cache": str(context.cache),
        # Environments share files by hard links, so apparent sizes add up to more than the disk
        # holds.
        "environments": [row.make_json() for row in rows],
        "apparent": sum(usage.apparent for usage in usages),
        "on_disk": count_disk_bytes(usages),
        # Files that the package cache of uv links, too, are not freed when an environment goes.
        "own": count_own_bytes(usages),
        "results": count_disk_bytes(measure_usage(context.cache / name) for name in RESULTS),
        "beside": count_disk_bytes(measure_usage(context.cache / name) for name in ADDITIONAL),
        "checkouts": count_disk_bytes([measure_usage(context.cache / CHECKOUTS)]),
        "free": shutil.disk_usage(context.cache).free,
    }


def render_cache(data: Mapping[str, Any]) -> Iterator[Text]:
    """Yield the disk space of the cache in lines.

    Args:
        data: See `measure_cache`.
    """
    environments = data["environments"]
    width = max((len(row["environment"]) for row in environments), default=0)
    yield Text(f"{'':{width}}  apparent       own  last used", style="bold")
    for row in environments:
        sizes = f"{format_bytes(row['apparent']):>8}  {format_bytes(row['own']):>8}"
        age = _format_age(row["used"])
        line = f"{row['environment']:{width}}  {sizes}  {age:11}  {row['unwanted']}"
        yield Text(line.rstrip())
    largest: dict[str, int] = {}
    for row in environments:
        # The largest of a kind estimates what the next environment of that kind takes.
        largest[row["kind"]] = max(largest.get(row["kind"], 0), row["apparent"])
    kinds = ", ".join(f"{kind} {format_bytes(size)}" for kind, size in sorted(largest.items()))
    yield Text(
        f"{plural(len(environments), 'environment')} in {data['cache']}: "
        f"{format_bytes(data['apparent'])} apparent, {format_bytes(data['on_disk'])} on disk, "
        f"{format_bytes(data['own'])} that the package cache does not hold too"
    )
    yield Text(f"largest of a kind, apparent: {kinds or 'none'}")
    yield Text(f"results of earlier runs: {format_bytes(data['results'])}")
    yield Text(f"packages in addition to those of cells: {format_bytes(data['beside'])}")
    yield Text(f"checkouts of suites: {format_bytes(data['checkouts'])}")
    yield Text(f"free: {format_bytes(data['free'])}")


def prune_cache(
    context: ProjectContext, *, unused_days: float | None = None, dry_run: bool = False
) -> PruneResult:
    """Remove the environments that no matrix wants, and the checkouts that no suite is pinned to.

    Args:
        context: The project: cache and matrices.
        unused_days: Days after which an unused environment is removed too.
        dry_run: Whether to remove nothing.

    Raises:
        InfrastructureError: If one cannot be removed.
    """
    unneeded = find_unneeded(
        context.cache,
        locks=collect_lock_hashes(context.matrix_folders, context.cache),
        wanted=_collect_wanted_environments(context),
        unused_days=unused_days,
    )
    # A checkout is removed like an environment: `prune` passes over those that a run holds.
    return prune([*unneeded, *_find_unpinned_checkouts(context)], dry_run=dry_run)


def make_prune_json(pruned: PruneResult, *, dry_run: bool) -> dict[str, Any]:
    """Return what pruning removed as JSON has it.

    Args:
        pruned: The removals.
        dry_run: Whether nothing was removed.
    """
    return {
        "dry_run": dry_run,
        "freed": pruned.freed,
        "linked": pruned.linked,
        # One list of removals for both, so that the freed bytes count a file once.
        "environments": [
            _make_removal_json(one) for one in pruned.removals if not _is_checkout(one)
        ],
        "checkouts": [_make_removal_json(one) for one in pruned.removals if _is_checkout(one)],
    }


def render_prune(pruned: PruneResult, *, dry_run: bool) -> Iterator[str]:
    """Yield what pruning removed in lines.

    Args:
        pruned: The removals.
        dry_run: Whether nothing was removed.
    """
    for removal in pruned.removals:
        what = (
            f"kept, {removal.problem}" if removal.problem else "would go" if dry_run else "removed"
        )
        yield f"{_format_name(removal)}: {what}: {removal.reason}"
    # A removal with a problem was passed over, usually because a run uses the environment.
    gone = [removal for removal in pruned.removals if not removal.problem]
    checkouts = sum(_is_checkout(removal) for removal in gone)
    more = f", {checkouts} checkouts of suites" if checkouts else ""
    verb = "would free" if dry_run else "freed"
    environments = plural(len(gone) - checkouts, "environment")
    yield f"{environments}{more}, {verb} {format_bytes(pruned.freed)}"
    if pruned.linked:
        yield (
            f"{format_bytes(pruned.linked)} of them lie in the package cache, or in other "
            "environments, too; what no environment needs goes with: uv cache clean"
        )


def _make_removal_json(removal: Removal) -> dict[str, str]:
    what = "checkout" if _is_checkout(removal) else "environment"
    return {what: _format_name(removal), "reason": removal.reason, "kept": removal.problem}


def _collect_wanted_environments(context: ProjectContext) -> set[str]:
    """Return the environment ids of the cells of every matrix, see `Cell.env_id`."""
    folders = context.matrix_folders
    return {
        cell.env_id
        # Every matrix, not only the default: pruning must not cost the nightly its environments.
        for name in list_matrices(folders)
        for cell in load_matrix(name, folders, context.releases).cells
    }


def _find_unpinned_checkouts(context: ProjectContext) -> list[Removal]:
    """Return the checkouts in the cache that no suite is pinned to."""
    folder = context.project.suites
    pinned = {(name, load_suite(name, folder).definition.revision) for name in find_suites(folder)}
    return [
        Removal(
            environment=StoredEnvironment(folder=path, lock="", used=read_last_use(path) or 0.0),
            reason="no suite is pinned to it",
        )
        for path in list_checkouts(context.cache)
        if (path.parent.name, path.name) not in pinned
    ]


def _is_checkout(removal: Removal) -> bool:
    # A checkout is CACHE/checkouts/SUITE/REVISION; an environment lies one level higher.
    return removal.environment.folder.parent.parent.name == CHECKOUTS


def _format_name(removal: Removal) -> str:
    folder = removal.environment.folder
    return f"{folder.parent.name}/{folder.name}" if _is_checkout(removal) else folder.name


def _format_age(used: str) -> str:
    days = int((time.time() - datetime.fromisoformat(used).timestamp()) / DAY)
    return {0: "today", 1: "yesterday"}.get(days, f"{days} days ago")
