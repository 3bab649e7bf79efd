"""`conformance matrix`: the matrices, their cells, and the table of releases."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
import msgspec

from conformance.app.cache_disk import prune_cache, pruned_data, pruned_lines
from conformance.app.context import load_context
from conformance.app.matrices import (
    cell_lines,
    cell_rows,
    lock_cells,
    provision_cells,
    refresh_release_table,
)
from conformance.app.session import Session
from conformance.app.topologies import list_topologies
from conformance.cells.matrix import matrix_names
from conformance.cli.console import print_result
from conformance.cli.options import no_downloads_option
from conformance.cli.words import CELLS, MATRICES
from conformance.errors import UsageError
from conformance.files import readable_json
from conformance.model.outcome import ExitCode

if TYPE_CHECKING:
    from collections.abc import Iterable

    from conformance.app.context import ProjectContext


@click.command("matrix")
@click.argument("name", required=False, type=MATRICES)
@click.option(
    "--cell", multiple=True, metavar="SELECTOR", type=CELLS, help="Show these cells instead."
)
@click.option(
    "--refresh", is_flag=True, help="Update the table of releases from the package index."
)
@click.option("--lock", is_flag=True, help="Resolve and store missing locks.")
@click.option("--provision", "make", is_flag=True, help="Create the environments.")
@click.option("--topologies", is_flag=True, help="List the topologies to compile for: TPUs, GPUs.")
@click.option("--prune", is_flag=True, help="Remove environments that no matrix uses.")
@click.option(
    "--unused", type=click.FloatRange(min=0), metavar="DAYS",
    help="With --prune: also remove environments not used for DAYS.",
)  # fmt: skip
@click.option("--dry-run", is_flag=True, help="With --prune: only show what would be removed.")
@no_downloads_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(
    *,
    name: str | None,
    cell: tuple[str, ...],
    refresh: bool,
    lock: bool,
    make: bool,
    topologies: bool,
    prune: bool,
    unused: float | None,
    dry_run: bool,
    as_json: bool,
) -> int:
    """Show matrices and cells, update releases and locks, and prune the cache.

    \b
    conformance matrix                       the matrices
    conformance matrix releases              the cells of a matrix, and its exclusions
    conformance matrix --cell '>=0.10'       the cells of a selector
    conformance matrix --refresh             look for new releases in the package index
    conformance matrix releases --lock       resolve missing locks
    conformance matrix --topologies          platforms to compile for, without the hardware
    conformance matrix --topologies --cell jax0.10.2-tpu:v5e:2x2
                                             ... known to the libtpu of a release
    conformance matrix --prune --dry-run     unused environments in the cache
    """  # noqa: D301 - \b is click's own mark
    context = load_context()
    if prune:
        pruned = prune_cache(context, unused_days=unused, dry_run=dry_run)
        if as_json:
            click.echo(readable_json(pruned_data(pruned, dry_run=dry_run)))
        else:
            _echo_lines(pruned_lines(pruned, dry_run=dry_run))
    elif unused is not None or dry_run:
        raise UsageError("--unused and --dry-run are for --prune: give it too, or leave them out")
    elif topologies:
        listed = list_topologies(context, cell)
        print_result(listed.data, listed.lines, as_json=as_json)
    elif refresh:
        changed = refresh_release_table(context)
        added, removed = ", ".join(changed.added), ", ".join(changed.removed)
        click.echo(f"added: {added or 'none'}; removed: {removed or 'none'}")
        click.echo(f"newest: {changed.releases.newest.version}")
    elif name is None and not (cell or lock or make):
        names = matrix_names(context.matrix_folders)
        click.echo(msgspec.json.encode(names) if as_json else "\n".join(names))
    elif lock:
        _echo_lines(lock_cells(context, context.cells(name, cell)[0]))
    else:
        return _show_cells(context, name, cell, make=make, as_json=as_json)
    return ExitCode.OK


def _show_cells(
    context: ProjectContext,
    matrix: str | None,
    selectors: tuple[str, ...],
    *,
    make: bool,
    as_json: bool,
) -> ExitCode:
    cells, left_out = context.cells(matrix, selectors)
    preparation = Session(context=context).prepare(cells, download=make)
    if make:
        _echo_lines(provision_cells(context, preparation))
        failed = any(planned.failure for planned in preparation.cells)
        return ExitCode.INFRA if failed else ExitCode.OK
    rows = cell_rows(context, preparation)
    exclusions = [*left_out, *preparation.exclusions]
    data = {"cells": rows, "exclusions": exclusions}
    print_result(data, cell_lines(rows, exclusions), as_json=as_json)
    return ExitCode.OK


def _echo_lines(lines: Iterable[str]) -> None:
    for line in lines:
        click.echo(line)
