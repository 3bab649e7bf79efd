"""`conformance cache`: disk usage, results, and the removal of what is not used."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from conformance.app.cache.disk import (
    make_prune_json,
    measure_cache,
    prune_cache,
    render_cache,
    render_prune,
)
from conformance.app.cache.results import (
    measure_results,
    open_result_caches,
    prune_results,
    render_pruned_results,
    render_results,
    render_verified,
    verify_results,
)
from conformance.app.context import load_context
from conformance.cli.output import json_option
from conformance.cli.run_options import cache_option
from conformance.errors import UsageError
from conformance.model.outcome import ExitCode

if TYPE_CHECKING:
    from conformance.cli.output import Output


@click.group("cache")
def command() -> None:
    """Show the disk usage of the cache, and remove what no matrix uses.

    The cache is in the folder that the variable CONFORMANCE_CACHE names. Results of earlier runs
    are also in the shared cache, if --cache or the project names one.

    conformance cache show                       the size of each environment, and which are unused
    conformance cache prune --dry-run            what would be removed
    conformance cache prune --unused 30
    conformance cache stats                      the results in the local and the shared cache
    conformance cache prune --results --max-size 5
    conformance cache prune --shared --unused 30
    conformance cache verify --shared --sample 1000
    """


@command.command("show", short_help="Show the disk usage of the cache.")
@json_option("the sizes")
def show(*, output: Output) -> int:
    """Show the size of each environment, when it was used last, and which no matrix uses."""
    return show_cache(output)


@command.command("prune", short_help="Remove environments or results.")
@click.option(
    "--unused", "unused_days", type=click.FloatRange(min=0), metavar="DAYS",
    help="Also remove environments not used, or results not written, for DAYS.",
)  # fmt: skip
@click.option("--results", is_flag=True, help="Prune the results in the local cache instead.")
@click.option("--shared", is_flag=True, help="Prune the shared cache instead.")
@click.option(
    "--max-size", type=click.FloatRange(min=0), metavar="GB",
    help="Remove the oldest results until GB are left.",
)  # fmt: skip
@cache_option
@click.option("--dry-run", is_flag=True, help="Only show what would be removed.")
@json_option("the removals")
def prune(
    *, output: Output, results: bool, shared: bool, max_size: float | None, **options: Any
) -> int:
    """Remove environments that no matrix uses, and checkouts that no suite is pinned to.

    With --results or --shared, remove results: the oldest records by --unused and --max-size, and
    the artifacts that no remaining record names.
    """
    if not (results or shared):
        if max_size is not None:
            raise UsageError("--max-size: limits results; give --results or --shared")
        return show_pruned(output, **options)
    if results and shared:
        raise UsageError("--results with --shared: give one of them")
    store = open_result_caches(load_context()).select(shared=shared)
    data = prune_results(store, max_gigabytes=max_size, **options)
    output.show(data, [render_pruned_results(data)])
    return ExitCode.OK


@command.command("stats", short_help="Show the results in the local and the shared cache.")
@cache_option
@json_option("the numbers")
def stats(*, output: Output) -> int:
    """Show number, size and age of the entries of each cache."""
    rows = measure_results(open_result_caches(load_context()))
    output.show(rows, render_results(rows))
    return ExitCode.OK


@command.command("verify", short_help="Find damaged results.")
@click.option("--shared", is_flag=True, help="Read the shared cache instead of the local one.")
@click.option("--sample", type=click.IntRange(1), metavar="N", help="Read N entries at random.")
@click.option("--delete", is_flag=True, help="Delete damaged entries.")
@cache_option
@json_option("the damaged entries")
def verify(*, output: Output, shared: bool, sample: int | None, delete: bool) -> int:
    """Read the results of a cache, and list those that differ from their digest.

    Runs ignore damaged entries. The exit status is 1 if there are any, unless they are deleted.
    """
    store = open_result_caches(load_context()).select(shared=shared)
    data = verify_results(store, sample=sample, delete=delete)
    output.show(data, render_verified(data))
    return ExitCode.UNEXPECTED if data["damaged"] and not delete else ExitCode.OK


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
