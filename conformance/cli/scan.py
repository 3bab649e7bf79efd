"""`conformance scan`: what an upgrade of jax changes for a code base, without running it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from conformance.app.scan import scan
from conformance.cli.output import json_option
from conformance.cli.words import CELLS
from conformance.model.outcome import ExitCode
from conformance.report.scan_text import make_scan_json, render_scan

if TYPE_CHECKING:
    from conformance.cli.output import Output


@click.command("scan")
@click.argument(
    "paths", nargs=-1, required=True, metavar="PATH...", type=click.Path(path_type=Path)
)
@click.option(
    "--from", "old", required=True, metavar="RELEASE", type=CELLS, help="Present release."
)
@click.option(
    "--to", "new", default="latest", show_default=True, metavar="RELEASE", type=CELLS,
    help="Wanted release.",
)  # fmt: skip
@click.option(
    "--history", "every", is_flag=True,
    help="Name every change of behaviour of a name that is called, not only those of a parameter "
    "that is passed.",
)  # fmt: skip
@click.option("--verbose", "-v", is_flag=True, help="Name every place of a hit.")
@json_option("the hits")
def command(
    *, paths: tuple[Path, ...], old: str, new: str, every: bool, verbose: bool, output: Output
) -> int:
    """Find what an upgrade of jax changes for code, without running it.

    PATH is a Python file or a folder. Names are resolved through imports, aliases and modules of
    the code base, and compared with the public names, signatures and options of each release, and
    with the names that the history of behaviour changes is about. No jax is imported.

    conformance scan src --from 0.5.3
    conformance scan train.py src --from 0.5.3 --to 0.9.0 --json hits.json

    Exit status: 0 no hits, 1 hits.
    """
    result = scan(paths, old, new, every=every)
    output.print(*render_scan(result, every=verbose))
    output.write_json(make_scan_json(result))
    return ExitCode.UNEXPECTED if result.hits else ExitCode.OK
