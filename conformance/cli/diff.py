"""`conformance diff`: compare two IRs, two cells or two runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click
from rich.progress import track

from conformance.app.context import load_context
from conformance.app.diff.comparison import DiffOptions, compare_named
from conformance.cli.options import run_option
from conformance.cli.output import json_option, open_console
from conformance.cli.words import CASES, CELLS
from conformance.engine.job_comparison import IrLevel
from conformance.errors import UsageError
from conformance.ir.analysis import PARSERS
from conformance.ir.graph import CROSS_LOWERED, IRS
from conformance.report.diff_data import NormalForms, SuiteDiff
from conformance.report.ir_terminal import Detail, DiffReport
from conformance.report.suites.diff import render_suite_diff

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from conformance.app.diff.comparison import CompletePair, Diff
    from conformance.cli.output import Output

ARTIFACTS: Final = (*IRS, *CROSS_LOWERED)
MANY: Final = 50
"""Jobs from which the progress of the comparison is shown."""


@click.command("diff")
@click.argument("names", nargs=-1, type=CASES, metavar="[FROM TO | FILE] [SELECT]...")
@click.option(
    "--cell", "cells", multiple=True, metavar="SELECTOR", type=CELLS,
    help="Only these cells of the runs, by id, release or specifier; of one cell, print the IRs.",
)  # fmt: skip
@run_option("Directory or id of the run that has the cells.  [default: the newest]")
@click.option(
    "--ir", "irs", multiple=True, type=click.Choice(ARTIFACTS), metavar="ARTIFACT",
    help=f"IRs to compare: {', '.join(ARTIFACTS)}; by default all that differ for a reason of "
    "their own.",
)  # fmt: skip
@click.option(
    "--between", nargs=2, type=click.Choice(ARTIFACTS), metavar="A B",
    help="Compare two IRs of each job, e.g. its StableHLO with that of another platform.",
)  # fmt: skip
@click.option(
    "--kind",
    type=click.Choice(tuple(PARSERS)),
    help="Kind of IR in the files, if it is not recognised.",
)
@click.option(
    "--level", metavar="[exact|canonical]",
    type=click.Choice([*(level.value for level in IrLevel), "structure", "neutral"]),
    default=IrLevel.EXACT.value, show_default=True,
    help="Normal form in which IRs must be equal.",
)  # fmt: skip
@click.option(
    "--only-changed", is_flag=True,
    help="Jobs that regressed, changed or were fixed, by root cause; no IRs.",
)  # fmt: skip
@click.option("--patterns", is_flag=True, help="Print one line per pattern.")
@click.option(
    "--full", is_flag=True, help="Print all lines of excerpts, and all facts that differ."
)
@json_option("the differences")
def command(
    *,
    names: tuple[str, ...],
    level: str,
    patterns: bool,
    full: bool,
    output: Output,
    **options: Any,
) -> int:
    """Compare two IRs, two cells or two runs, and group the differences into patterns.

    FROM and TO are two files, two cells of a run, or two runs.

    Two files: HLO, StableHLO in the generic form, jaxprs from run directories, or goldens, also
    compressed (.zst); - is standard input.
        conformance diff before.hlo after.hlo
        conformance diff before.hlo after.hlo --level canonical --json diff.json

    Two cells of a run, each a cell id, a release or a specifier. SELECT is a family, a case id or a
    glob.
        conformance diff 0.5.3 0.8.3 shard_map_while/while_carry
        conformance diff 0.6.2 '>=0.8' 'nnx_*' --ir hlo --run reports/runs/ID

    Two platforms: the StableHLO of a program for its own cell and for another platform:
    --between takes two of stablehlo, stablehlo-tpu, stablehlo-cuda and stablehlo-rocm.
        conformance diff --cell 0.10.2 --between stablehlo stablehlo-tpu

    Two runs, by folder or id: all common jobs, grouped by equal changes.
        conformance diff RUN_A RUN_B
        conformance diff RUN_A RUN_B --only-changed
        conformance diff RUN_A RUN_B aot_placement --cell 0.8.3 --patterns

    Tests of a suite, in two cells or two runs; --full names every test.
        conformance diff 0.5.3 0.8.3

    One file, or one case in one cell: its normal form as text, which goldens contain and
    `filecheck` claims of a case match; --json includes its facts.
        conformance diff after.hlo
        conformance diff shard_map_while/while_carry --cell 0.8.3 --ir hlo

    Exit status: 0 equal at --level, 1 different, 2 usage, 3 nothing to compare.
    """
    if patterns and full:
        raise UsageError("--patterns and --full: give one of them")
    # The JSON also has the facts of IRs that are equal.
    complete = output.json_file is not None
    diff_options = DiffOptions(level=IrLevel(level), complete=complete, **options)
    found = compare_named(load_context(), names, diff_options, _track)
    # Not `show`: the report for people is rendered only if it is printed.
    output.write_json(found.data)
    if not output.prints_json:
        detail = Detail.PATTERNS if patterns else Detail.FULL if full else Detail.SHORT
        _print(found, diff_options.level, detail)
    # The status of diff(1): 0 equal, 1 different.
    return int(not found.equal)


def _track(pairs: Sequence[CompletePair]) -> Iterable[CompletePair]:
    """Iterate over pairs of jobs with a progress bar, where there are many."""
    # On standard error, because the differences on standard output may be piped.
    console = open_console(stderr=True)
    silent = len(pairs) < MANY or not console.is_terminal
    return track(pairs, "comparing", console=console, transient=True, disable=silent)


def _print(found: Diff, level: IrLevel, detail: Detail) -> None:
    if isinstance(found, NormalForms):
        # Not by a console, which would expand the tabs of the text.
        click.echo(found.text, nl=False)
    elif isinstance(found, SuiteDiff):
        for line in render_suite_diff(found.changes, found.names, every=detail is Detail.FULL):
            click.echo(line)
    else:
        DiffReport(open_console(), level, detail).show(found)
