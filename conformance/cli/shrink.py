"""`conformance shrink`: reduce a case or a script to what still fails."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from conformance.app.context import load_context
from conformance.app.output_files import check_writable, write_file
from conformance.app.search.shrink import ShrinkOptions, shrink
from conformance.bench.measured import PHASES
from conformance.cli.options import RenamedOption, jobs_option, timeout_option, with_option
from conformance.cli.output import STANDARD_OUTPUT, json_option, live_status, open_console
from conformance.cli.words import CASES, CELLS

if TYPE_CHECKING:
    from conformance.cli.output import Output


@click.command("shrink")
@click.argument("case", type=CASES)
@click.option(
    "--bad", cls=RenamedOption, old=["--cell"], required=True, metavar="SELECTOR", type=CELLS,
    help="Cell in which the case deviates.",
)  # fmt: skip
@click.option(
    "--good", cls=RenamedOption, old=["--good-cell"], metavar="SELECTOR", type=CELLS,
    help="Cell in which the case and the result conform; `none` for no such cell.  "
    "[default: the nearest release that conforms]",
)  # fmt: skip
@click.option(
    "--fact", default="", metavar="NAME",
    help="Keep this fact of the optimised HLO, e.g. collectives.all-reduce.",
)  # fmt: skip
@click.option(
    "--phase", type=click.Choice(PHASES), default=None,
    help="Keep the ratio of the times of this phase in both cells, at the largest size.",
)  # fmt: skip
@click.option("--memory", is_flag=True, help="Keep the ratio of the memory that it takes.")
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
@timeout_option("Maximum time of the search.", "--seconds", least=1, default=300.0)
@jobs_option("Number of parallel trials.")
def command(*, case: str, out: Path, repro: Path | None, output: Output, **options: Any) -> int:
    """Shrink a case or a script that fails, gives a wrong value, or has a fact.

    CASE may be a script or a report, as for `conformance bisect`. Shrinking a script keeps its
    error, or the difference of its output from the other cell. Each candidate runs in a process of
    its own.

    The result is a case file with fewer statements and operations, smaller shapes and fewer
    devices, with the same error from the same function, or the same kind of wrong value. Each edit
    is tried in the cell that deviates and in the cell that conforms. Comments are removed.

    conformance shrink 'shard_map_while/fori_from[zeros]' --bad 0.6.2
    conformance shrink CASE --bad 0.6.2 --good 0.5.3 --out cases/my_family/small.py
    conformance shrink CASE --bad 0.6.2 --repro bug.py
    conformance shrink report.py --bad 0.6.2 --out small.py
    conformance shrink CASE --bad '0.8.3@tpu:v5e:2x2' --fact collectives.all-gather
    conformance shrink CASE --bad 0.11.1 --good 0.11.0 --phase run

    Exit status: 0 done and confirmed, 1 the result is flaky, 2 usage, or nothing to keep,
    4 infrastructure, 70 internal error, 130 interrupted: the smallest so far is written.
    """
    prints_case = str(out) == STANDARD_OUTPUT
    # Before a search of minutes; standard output is always writable.
    for option, path in (("--out", None if prints_case else out), ("--repro", repro)):
        if path is not None:
            check_writable(option, path)
    # Standard output is for the case or the JSON.
    console = open_console(stderr=True)
    shrink_options = ShrinkOptions(out=out, repro=repro, **options)
    found = shrink(load_context(), case, shrink_options, partial(live_status, console))
    # Both would go to standard output; the JSON has the text of the case, too.
    if not (output.prints_json and prints_case):
        write_file("--out", out, found.shrunk.text.encode())
    output.write_json(found.data)
    for line in found.lines:
        console.print(line)
    return found.exit_code
