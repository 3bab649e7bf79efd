"""`conformance diff`: how two IRs, two cells or two runs differ."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click
from rich.progress import track

from conformance.app.comparison import DiffOptions, compare_named
from conformance.app.context import load_context
from conformance.cli.console import open_console
from conformance.cli.words import CASES, CELLS
from conformance.engine.job_comparison import IrLevel
from conformance.errors import UsageError
from conformance.files import readable_json
from conformance.ir.analysis import PARSERS
from conformance.ir.graph import CROSS_LOWERED, IRS
from conformance.report.diff_data import NormalForms, SuiteDiff
from conformance.report.ir_terminal import Detail, DiffReport
from conformance.report.suite_diff import render_suite_diff

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from conformance.app.comparison import Both, Diff

ARTIFACTS: Final = (*IRS, *CROSS_LOWERED)
MANY: Final = 50
"""Jobs from which the progress of the comparison is shown."""


@click.command("diff")
@click.argument("what", nargs=-1, type=CASES, metavar="[A B | SELECT... | RUN RUN [SELECT...] | A]")
@click.option(
    "--cell", multiple=True, metavar="SELECTOR", type=CELLS,
    help="Cells of a run, by id, release or specifier; the first is compared with the others.",
)  # fmt: skip
@click.option("--run", "run_dir", metavar="RUN", help="Run of --cell; the newest by default.")
@click.option(
    "--ir", multiple=True, type=click.Choice(ARTIFACTS), metavar="ARTIFACT",
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
    "--level", type=click.Choice([level.value for level in IrLevel]),
    default=IrLevel.STRUCTURE.value, show_default=True,
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
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(
    *,
    what: tuple[str, ...],
    cell: tuple[str, ...],
    run_dir: str | None,
    ir: tuple[str, ...],
    between: tuple[str, str] | None,
    kind: str | None,
    level: str,
    only_changed: bool,
    patterns: bool,
    full: bool,
    as_json: bool,
) -> int:
    """Compare two IRs, two cells or two runs, and group the differences into patterns.

    \b
    Two files: HLO, StableHLO in the generic form, jaxprs from run directories, or goldens, also
    compressed (.zst); - is standard input.
        conformance diff before.hlo after.hlo
        conformance diff before.hlo after.hlo --level neutral --json
    \b
    Cases in two cells of a run, by default the newest. SELECT is a family, a case id or a glob.
        conformance diff shard_map_while/while_carry --cell 0.5.3 --cell 0.8.3
        conformance diff 'nnx_*' --cell 0.6.2 --cell '>=0.8' --ir hlo --run reports/runs/ID
    \b
    Two platforms: the StableHLO of a program for its own cell and for another platform:
    --between takes two of stablehlo, stablehlo-tpu, stablehlo-cuda and stablehlo-rocm.
        conformance diff --cell 0.10.2 --between stablehlo stablehlo-tpu
    \b
    Two runs, by folder or id: all common jobs, grouped by equal changes.
        conformance diff RUN_A RUN_B
        conformance diff RUN_A RUN_B --only-changed
        conformance diff RUN_A RUN_B aot_placement --cell 0.8.3 --patterns
    \b
    Tests of a suite, in two cells or two runs; --full names every test.
        conformance diff --cell 0.5.3 --cell 0.8.3
    \b
    One file, or one case in one cell: its normal form as text, which goldens contain and
    `filecheck` claims of a case match; --json includes its facts.
        conformance diff after.hlo
        conformance diff shard_map_while/while_carry --cell 0.8.3 --ir hlo

    Exit status: 0 equal at --level, 1 different, 2 usage, 3 nothing to compare.
    """  # noqa: D301 - \b is click's own mark
    if patterns and full:
        raise UsageError("--patterns and --full: give one of them")
    options = DiffOptions(
        cells=cell, run=run_dir, irs=ir, between=between, kind=kind, level=IrLevel(level),
        only_changed=only_changed, complete=as_json,
    )  # fmt: skip
    found = compare_named(load_context(), what, options, _track)
    if as_json:
        click.echo(readable_json(found.data))
    else:
        detail = Detail.PATTERNS if patterns else Detail.FULL if full else Detail.SHORT
        _print(found, options.level, detail)
    return int(not found.equal)


def _track(pairs: Sequence[Both]) -> Iterable[Both]:
    """Iterate over pairs of jobs with a progress bar, where there are many."""
    console = open_console(stderr=True)
    silent = len(pairs) < MANY or not console.is_terminal
    return track(pairs, "comparing", console=console, transient=True, disable=silent)


def _print(found: Diff, level: IrLevel, detail: Detail) -> None:
    if isinstance(found, NormalForms):
        click.echo(found.text, nl=False)
    elif isinstance(found, SuiteDiff):
        for line in render_suite_diff(found.changes, found.names, every=detail is Detail.FULL):
            click.echo(line)
    else:
        DiffReport(open_console(), level, detail).show(found)
