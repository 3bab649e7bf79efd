"""`conformance cache`: the disk usage of the cache, and the removal of unused environments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from conformance.app.cache_disk import (
    make_prune_json,
    measure_cache,
    prune_cache,
    render_cache,
    render_prune,
)
from conformance.app.context import load_context
from conformance.cli.output import json_option
from conformance.model.outcome import ExitCode

if TYPE_CHECKING:
    from conformance.cli.output import Output


@click.group("cache")
def command() -> None:
    """Show the disk usage of the cache, and remove what no matrix uses.

    The cache is in the folder that the variable CONFORMANCE_CACHE names.

    conformance cache show                       the size of each environment, and which are unused
    conformance cache prune --dry-run            what would be removed
    conformance cache prune --unused 30
    """


@command.command("show", short_help="Show the disk usage of the cache.")
@json_option("the sizes")
def show(*, output: Output) -> int:
    """Show the size of each environment, when it was used last, and which no matrix uses."""
    return show_cache(output)


@command.command("prune", short_help="Remove environments that no matrix uses.")
@click.option(
    "--unused", "unused_days", type=click.FloatRange(min=0), metavar="DAYS",
    help="Also remove environments not used for DAYS.",
)  # fmt: skip
@click.option("--dry-run", is_flag=True, help="Only show what would be removed.")
@json_option("the removals")
def prune(*, output: Output, **options: Any) -> int:
    """Remove environments that no matrix uses, and checkouts that no suite is pinned to."""
    return show_pruned(output, **options)


def show_cache(output: Output) -> int:
    """Show the disk usage of the cache, also for the earlier `doctor --disk`."""
    # Measured once for JSON and lines: walking a large cache takes seconds.
    data = measure_cache(load_context())
    output.show(data, render_cache(data))
    return ExitCode.OK


def show_pruned(output: Output, *, unused_days: float | None, dry_run: bool) -> int:
    """Prune the cache, also for the earlier `matrix --prune`."""
    pruned = prune_cache(load_context(), unused_days=unused_days, dry_run=dry_run)
    output.show(make_prune_json(pruned, dry_run=dry_run), render_prune(pruned, dry_run=dry_run))
    return ExitCode.OK
