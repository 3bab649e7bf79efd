"""`conformance matrix`: the matrices, their cells, and the table of releases."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from conformance.app.context import load_context
from conformance.app.matrix import (
    list_cells,
    list_topologies,
    lock_cells,
    provision_cells,
    refresh_release_table,
    render_cells,
)
from conformance.app.session import Session
from conformance.cells.matrix import list_matrices
from conformance.cli.cache import show_pruned
from conformance.cli.options import no_downloads_option
from conformance.cli.output import json_option
from conformance.cli.words import CELLS, MATRICES
from conformance.errors import UsageError
from conformance.model.outcome import ExitCode

if TYPE_CHECKING:
    from collections.abc import Iterable

    from conformance.app.context import ProjectContext
    from conformance.app.matrix import CellStep
    from conformance.cli.output import Output


@click.command("matrix")
@click.argument("name", required=False, type=MATRICES)
@click.option(
    "--cell", multiple=True, metavar="SELECTOR", type=CELLS, help="Show these cells instead."
)
@click.option(
    "--refresh", is_flag=True, help="Update the table of releases from the package index."
)
@click.option("--lock", is_flag=True, help="Resolve and store missing locks.")
@click.option("--provision", is_flag=True, help="Create the environments.")
@click.option("--topologies", is_flag=True, help="List the topologies to compile for: TPUs, GPUs.")
# Earlier spellings of `conformance cache prune`.
@click.option("--prune", is_flag=True, hidden=True)
@click.option("--unused", type=click.FloatRange(min=0), hidden=True)
@click.option("--dry-run", is_flag=True, hidden=True)
@no_downloads_option
@json_option("the cells, the matrices, or the effect of the option")
def command(
    *,
    name: str | None,
    cell: tuple[str, ...],
    refresh: bool,
    lock: bool,
    provision: bool,
    topologies: bool,
    prune: bool,
    unused: float | None,
    dry_run: bool,
    output: Output,
) -> int:
    """Show matrices and cells, and update releases and locks.

    conformance matrix                       the matrices
    conformance matrix releases              the cells of a matrix, and its exclusions
    conformance matrix --cell '>=0.10'       the cells of a selector
    conformance matrix --refresh             look for new releases in the package index
    conformance matrix releases --lock       resolve missing locks
    conformance matrix --topologies          platforms to compile for, without the hardware
    conformance matrix --topologies --cell jax0.10.2-tpu:v5e:2x2
                                             ... known to the libtpu of a release
    """
    context = load_context()
    if prune:
        return show_pruned(output, unused_days=unused, dry_run=dry_run)
    # Ignored, `--dry-run --lock` would write locks.
    if unused is not None or dry_run:
        raise UsageError("--unused and --dry-run are for --prune: give it too, or leave them out")
    if topologies:
        listed = list_topologies(context, cell)
        output.show(listed.data, listed.lines)
    elif refresh:
        update = refresh_release_table(context)
        newest = update.releases.newest.version
        data = {"added": update.added, "removed": update.removed, "newest": newest}
        added, removed = (", ".join(names) or "none" for names in (update.added, update.removed))
        output.show(data, [f"added: {added}; removed: {removed}", f"newest: {newest}"])
    elif name is None and not (cell or lock or provision):
        names = list_matrices(context.matrix_folders)
        output.show(names, names)
    elif lock:
        _show_steps(output, lock_cells(context, context.select_cells(name, cell)[0]))
    else:
        return _show_cells(context, name, cell, output, provision=provision)
    return ExitCode.OK


def _show_cells(
    context: ProjectContext,
    matrix: str | None,
    selectors: tuple[str, ...],
    output: Output,
    *,
    provision: bool,
) -> ExitCode:
    cells, left_out = context.select_cells(matrix, selectors)
    # Showing cells downloads no Python; creating environments may.
    preparation = Session(context=context).prepare(cells, download=provision)
    if provision:
        _show_steps(output, provision_cells(context, preparation))
        # The other environments are created first, because one missing Python must not stop them.
        failed = any(planned.failure for planned in preparation.cells)
        return ExitCode.INFRA if failed else ExitCode.OK
    rows = list_cells(context, preparation)
    exclusions = [*left_out, *preparation.exclusions]
    output.show({"cells": rows, "exclusions": exclusions}, render_cells(rows, exclusions))
    return ExitCode.OK


def _show_steps(output: Output, steps: Iterable[CellStep]) -> None:
    """Print each step as it ends, then write all of them as JSON."""
    done = []
    for step in steps:
        output.print(step.line)
        # Printed one by one: an environment takes seconds, and a killed command shows how far it
        # came.
        done.append(step._asdict())
    output.write_json(done)
