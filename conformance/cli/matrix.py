"""`conformance matrix`: the matrices, their cells, and the table of releases."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
import msgspec
from rich.text import Text

from conformance.app.cells import cell_row, lock_cells, provision_cells, refresh_table
from conformance.app.context import load_context
from conformance.app.session import Session
from conformance.cells.matrix import matrix_names
from conformance.cli.console import open_console
from conformance.cli.disk import prune_cache
from conformance.cli.options import no_downloads_option
from conformance.cli.topologies import show_topologies
from conformance.cli.words import CELLS, MATRICES
from conformance.errors import UsageError
from conformance.files import readable_json
from conformance.model.outcome import ExitCode
from conformance.wording import plural

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from conformance.app.context import ProjectContext
    from conformance.engine.prepare import Preparation
    from conformance.model.run import Exclusion

PACKAGES = ("jaxlib", "numpy", "flax")
"""Packages whose versions are shown beside a cell."""


@click.command("matrix")
@click.argument("name", required=False, type=MATRICES)
@click.option(
    "--cell", multiple=True, metavar="SELECTOR", type=CELLS, help="Show these cells instead."
)
@click.option("--refresh", is_flag=True, help="Refresh the table of releases from the index.")
@click.option("--lock", is_flag=True, help="Resolve the locks that are missing, and store them.")
@click.option("--provision", "make", is_flag=True, help="Make the environments now.")
@click.option("--topologies", is_flag=True, help="List what can be compiled for: TPUs, GPUs.")
@click.option("--prune", is_flag=True, help="Remove environments that no matrix wants any more.")
@click.option(
    "--unused", type=click.FloatRange(min=0), metavar="DAYS",
    help="With --prune: also those that were not used for so long.",
)  # fmt: skip
@click.option("--dry-run", is_flag=True, help="With --prune: say only what would be removed.")
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
    """Show matrices and cells; refresh releases and locks; free the disk.

    \b
    conformance matrix                       names of the matrices
    conformance matrix releases              the cells of one, and what it leaves out
    conformance matrix --cell '>=0.10'       the cells that a selector means
    conformance matrix --refresh             look for new releases in the package index
    conformance matrix releases --lock       resolve what has no lock yet
    conformance matrix --topologies          platforms to compile for, without the hardware
    conformance matrix --topologies --cell jax0.10.2-tpu:v5e:2x2
                                             ... and which of them that release's libtpu knows
    conformance matrix --prune --dry-run     what is in the cache for nothing
    """  # noqa: D301 - \b is click's own mark
    context = load_context()
    if prune:
        return prune_cache(context, unused_days=unused, dry_run=dry_run, as_json=as_json)
    if unused is not None or dry_run:
        raise UsageError("--unused and --dry-run are for --prune: give it too, or leave them out")
    if topologies:
        return show_topologies(context, cell, as_json=as_json)
    if refresh:
        changed = refresh_table(context)
        added, removed = ", ".join(changed.added), ", ".join(changed.removed)
        click.echo(f"added: {added or 'none'}; removed: {removed or 'none'}")
        click.echo(f"newest: {changed.releases.newest.version}")
        return ExitCode.OK
    if name is None and not (cell or lock or make):
        return _names(context, as_json=as_json)
    cells, left_out = context.cells(name, cell)
    if lock:
        for line in lock_cells(context, name, cell):
            click.echo(line)
        return ExitCode.OK
    preparation = Session(context=context).prepare(cells, download=make)
    return (
        _make(context, preparation)
        if make
        else _show(context, preparation, left_out, as_json=as_json)
    )


def _show(
    context: ProjectContext,
    preparation: Preparation,
    left_out: Sequence[Exclusion],
    *,
    as_json: bool,
) -> int:
    rows = [cell_row(context, planned, preparation) for planned in preparation.cells]
    exclusions = [*left_out, *preparation.exclusions]
    if as_json:
        data = {"cells": rows, "exclusions": exclusions}
        click.echo(readable_json(data))
        return 0
    console = open_console()
    for row in rows:
        line = Text(row["cell"]).append(f"  {_described(row)}", "bright_black")
        console.print(line, soft_wrap=True)
    for exclusion in exclusions:
        console.print(f"excluded {exclusion.cell}: {exclusion.reason}", soft_wrap=True)
    console.print(f"{plural(len(rows), 'cell')}, {len(exclusions)} excluded")
    return 0


def _make(context: ProjectContext, preparation: Preparation) -> int:
    code = ExitCode.OK
    for line, failed in provision_cells(context, preparation):
        click.echo(f"conformance: {line}" if failed else line, err=failed)
        code = ExitCode.INFRA if failed else code
    return code


def _described(row: Mapping[str, Any]) -> str:
    if row["failure"]:
        return str(row["failure"])
    versions = row["versions"]
    known = [f"{name} {versions[name]}" for name in PACKAGES if name in versions]
    return ", ".join([*known, "provisioned" if row["provisioned"] else "not provisioned yet"])


def _names(context: ProjectContext, *, as_json: bool) -> int:
    names = matrix_names(context.matrix_folders)
    click.echo(msgspec.json.encode(names) if as_json else "\n".join(names))
    return 0
