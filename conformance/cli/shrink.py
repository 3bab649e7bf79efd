"""`conformance shrink`: a case cut down to what makes it fail."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import click

from conformance.app.context import default_jobs, load_context
from conformance.app.output_files import check_writable, write_file
from conformance.app.shrink import ShrinkOptions, shrink
from conformance.cli.console import open_console
from conformance.cli.options import json_option, with_option
from conformance.cli.status import live_status
from conformance.cli.words import CASES, CELLS
from conformance.files import readable_json


@click.command("shrink")
@click.argument("case", type=CASES)
@click.option(
    "--cell", required=True, metavar="SELECTOR", type=CELLS, help="Cell in which the case deviates."
)
@click.option(
    "--good-cell", metavar="SELECTOR", type=CELLS,
    help="Cell in which the case and the result conform; `none` for no such cell.  "
    "[default: the nearest release that conforms]",
)  # fmt: skip
@click.option(
    "--fact", default="", metavar="NAME",
    help="Keep this fact of the optimised HLO, e.g. collectives.all-reduce.",
)  # fmt: skip
@click.option(
    "--out", type=click.Path(path_type=Path, allow_dash=True), default="-", metavar="FILE",
    help="Case file to write.  [default: standard output]",
)  # fmt: skip
@click.option(
    "--repro", type=click.Path(path_type=Path), metavar="FILE",
    help="Also write a reproduction in one file, like `conformance repro`.",
)  # fmt: skip
@with_option
@json_option("the result")
@click.option(
    "--probes", type=click.IntRange(min=1), default=400, show_default=True,
    help="Maximum number of trials.",
)  # fmt: skip
@click.option(
    "--seconds", type=click.FloatRange(min=1), default=300.0, show_default=True,
    help="Maximum time.",
)  # fmt: skip
@click.option(
    "--jobs", "-j", type=click.IntRange(min=1), default=default_jobs,
    help="Number of parallel trials.  [default: one per core]",
)  # fmt: skip
def command(
    *,
    case: str,
    out: Path,
    repro: Path | None,
    json_file: Path | None,
    **options: Any,
) -> int:
    """Shrink a case or a script that fails, gives a wrong value, or has a fact.

    CASE may be a script or a report, as for `conformance bisect`. Shrinking a script keeps its
    error, or the difference of its output from the other cell. Each candidate runs in a process of
    its own.

    The result is a case file with fewer statements and operations, smaller shapes and fewer
    devices, with the same error from the same function, or the same kind of wrong value. Each edit
    is tried in the cell that deviates and in the cell that conforms. Comments are removed.

    \b
    conformance shrink 'shard_map_while/fori_from[zeros]' --cell 0.6.2
    conformance shrink CASE --cell 0.6.2 --good-cell 0.5.3 --out cases/my_family/small.py
    conformance shrink CASE --cell 0.6.2 --repro bug.py
    conformance shrink report.py --cell 0.6.2 --out small.py
    conformance shrink CASE --cell '0.8.3@tpu:v5e:2x2' --fact collectives.all-gather

    Exit status: 0 done and confirmed, 1 the result is flaky, 2 usage, or nothing to keep,
    4 infrastructure, 70 internal error, 130 interrupted: the smallest so far is written.
    """  # noqa: D301 - \b is click's own mark
    context = load_context()
    for option, path in (("--out", out), ("--json", json_file), ("--repro", repro)):
        if path is not None and str(path) != "-":
            check_writable(option, path)
    console = open_console(stderr=True)
    asked = ShrinkOptions(out=out, repro=repro, **options)
    found = shrink(context, case, asked, partial(live_status, console))
    if str(json_file) != "-" or str(out) != "-":
        write_file("--out", out, found.shrunk.text.encode())
    if json_file is not None:
        write_file("--json", json_file, readable_json(found.data))
    for line in found.lines:
        console.print(line, soft_wrap=True)
    return found.exit_code
