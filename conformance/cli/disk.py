"""What the cache takes of the disk, for `conformance doctor --disk` and `matrix --prune`."""

from __future__ import annotations

import shutil
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import click

from conformance.cells.disk import (
    StoredEnvironment,
    disk_bytes,
    gigabytes,
    kind_of,
    own_bytes,
    stored_environments,
    usage_of,
)
from conformance.cells.in_use import last_used
from conformance.cells.layer import LOCKS, WHEELS
from conformance.cells.matrix import load_matrix, matrix_names
from conformance.cells.overlay import OVERLAYS
from conformance.cells.prune import DAY, Removal, candidates, known_locks, prune, unwanted
from conformance.cli.console import open_console
from conformance.engine.settled import FOLDER as SETTLED
from conformance.files import readable_json
from conformance.suites.catalogue.checkouts import FOLDER as CHECKOUTS
from conformance.suites.catalogue.checkouts import stored_checkouts
from conformance.suites.catalogue.definition import named_suite
from conformance.suites.catalogue.named import suite_names
from conformance.wording import plural

if TYPE_CHECKING:
    from rich.console import Console

    from conformance.app.context import ProjectContext
    from conformance.cells.disk import Usage
    from conformance.cells.prune import Pruned

BESIDE: Final = (OVERLAYS, LOCKS, WHEELS)
"""Folders of the cache that hold what cells have beside their own packages."""
RESULTS: Final = ("results", SETTLED, "blobs")
"""Folders of the cache that hold observations of earlier runs."""


@dataclass(frozen=True, slots=True)
class _Row:
    environment: StoredEnvironment
    usage: Usage
    unwanted: str

    def data(self) -> dict[str, Any]:
        used = datetime.fromtimestamp(self.environment.used, tz=UTC)
        return {
            "environment": self.environment.folder.name,
            "kind": kind_of(self.environment.env_id) or "cpu",
            "apparent": self.usage.apparent,
            "own": self.usage.own,
            "used": f"{used:%Y-%m-%dT%H:%M:%SZ}",
            "unwanted": self.unwanted,
        }


def show_disk(context: ProjectContext, *, as_json: bool) -> None:
    """Show what each environment in the cache takes of the disk, and all of them together.

    Args:
        context: Surroundings: cache and matrices.
        as_json: Whether to print JSON.
    """
    locks, wanted = known_locks(context.matrix_folders, context.cache), wanted_environments(context)
    rows = [
        _Row(stored, usage_of(stored.folder), unwanted(stored, locks=locks, wanted=wanted))
        for stored in stored_environments(context.cache)
    ]
    usages = [row.usage for row in rows]
    data = {
        "cache": str(context.cache),
        "environments": [row.data() for row in rows],
        "apparent": sum(usage.apparent for usage in usages),
        "on_disk": disk_bytes(usages),
        "own": own_bytes(usages),
        "results": disk_bytes(usage_of(context.cache / name) for name in RESULTS),
        "beside": disk_bytes(usage_of(context.cache / name) for name in BESIDE),
        "checkouts": disk_bytes([usage_of(context.cache / CHECKOUTS)]),
        "free": shutil.disk_usage(context.cache).free,
    }
    if as_json:
        click.echo(readable_json(data))
    else:
        _print_disk(open_console(), data)


def _print_disk(console: Console, data: dict[str, Any]) -> None:
    width = max((len(row["environment"]) for row in data["environments"]), default=0)
    console.print(f"{'':{width}}  apparent       own  last used", style="bold", soft_wrap=True)
    for row in data["environments"]:
        sizes = f"{gigabytes(row['apparent']):>8}  {gigabytes(row['own']):>8}"
        line = f"{row['environment']:{width}}  {sizes}  {_ago(row['used']):11}  {row['unwanted']}"
        console.print(line.rstrip(), soft_wrap=True)
    largest: dict[str, int] = {}
    for row in data["environments"]:
        largest[row["kind"]] = max(largest.get(row["kind"], 0), row["apparent"])
    kinds = ", ".join(f"{kind} {gigabytes(size)}" for kind, size in sorted(largest.items()))
    console.print(
        f"{plural(len(data['environments']), 'environment')} in {data['cache']}: "
        f"{gigabytes(data['apparent'])} apparent, {gigabytes(data['on_disk'])} on disk, "
        f"{gigabytes(data['own'])} that the package cache does not hold too",
        soft_wrap=True,
    )
    console.print(f"largest of a kind, apparent: {kinds or 'none'}")
    console.print(f"results of earlier runs: {gigabytes(data['results'])}")
    console.print(f"packages beside those of cells: {gigabytes(data['beside'])}")
    console.print(f"checkouts of suites: {gigabytes(data['checkouts'])}")
    console.print(f"free: {gigabytes(data['free'])}")


def _ago(used: str) -> str:
    days = int((time.time() - datetime.fromisoformat(used).timestamp()) / DAY)
    return {0: "today", 1: "yesterday"}.get(days, f"{days} days ago")


def wanted_environments(context: ProjectContext) -> set[str]:
    """Return the environments of the cells of every matrix, as `Cell.env_id` spells them."""
    folders = context.matrix_folders
    return {
        cell.env_id
        for name in matrix_names(folders)
        for cell in load_matrix(name, folders, context.releases).cells
    }


def prune_cache(
    context: ProjectContext, *, unused_days: float | None, dry_run: bool, as_json: bool
) -> int:
    """Remove the environments that nothing wants, and say what that freed.

    Args:
        context: Surroundings: cache and matrices.
        unused_days: Days after which an environment that was not used goes too.
        dry_run: Whether to say only what would be removed.
        as_json: Whether to print JSON.

    Returns:
        Exit status.
    """
    found = candidates(
        context.cache,
        locks=known_locks(context.matrix_folders, context.cache),
        wanted=wanted_environments(context),
        unused_days=unused_days,
    )
    pruned = prune([*found, *_unpinned(context)], dry_run=dry_run)
    if as_json:
        click.echo(readable_json(_pruned(pruned, dry_run)))
        return 0
    for removal in pruned.removals:
        what = f"kept, {removal.kept}" if removal.kept else "would go" if dry_run else "removed"
        click.echo(f"{_name(removal)}: {what}: {removal.reason}")
    gone = [removal for removal in pruned.removals if not removal.kept]
    checkouts = sum(_is_checkout(removal) for removal in gone)
    more = f", {checkouts} checkouts of suites" if checkouts else ""
    verb = "would free" if dry_run else "freed"
    environments = plural(len(gone) - checkouts, "environment")
    click.echo(f"{environments}{more}, {verb} {gigabytes(pruned.freed)}")
    if pruned.linked:
        click.echo(
            f"{gigabytes(pruned.linked)} of them lie in the package cache, or in other "
            "environments, too; what no environment needs goes with: uv cache clean"
        )
    return 0


def _pruned(pruned: Pruned, dry_run: bool) -> dict[str, Any]:
    return {
        "dry_run": dry_run,
        "freed": pruned.freed,
        "linked": pruned.linked,
        "environments": [_told(one) for one in pruned.removals if not _is_checkout(one)],
        "checkouts": [_told(one) for one in pruned.removals if _is_checkout(one)],
    }


def _told(removal: Removal) -> dict[str, str]:
    what = "checkout" if _is_checkout(removal) else "environment"
    return {what: _name(removal), "reason": removal.reason, "kept": removal.kept}


def _unpinned(context: ProjectContext) -> list[Removal]:
    """Return the checkouts in the cache that no suite is pinned to."""
    folder = context.project.suites
    pinned = {(name, named_suite(name, folder).definition.revision) for name in suite_names(folder)}
    return [
        Removal(
            environment=StoredEnvironment(folder=path, lock="", used=last_used(path) or 0.0),
            reason="no suite is pinned to it",
        )
        for path in stored_checkouts(context.cache)
        if (path.parent.name, path.name) not in pinned
    ]


def _is_checkout(removal: Removal) -> bool:
    return removal.environment.folder.parent.parent.name == CHECKOUTS


def _name(removal: Removal) -> str:
    folder = removal.environment.folder
    return f"{folder.parent.name}/{folder.name}" if _is_checkout(removal) else folder.name
