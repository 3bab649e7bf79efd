"""`conformance bench`: compare time and memory of cases in two or more cells."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from conformance.app.bench.choice import choose_measured_cases, limit_time, order_cases
from conformance.app.bench.measurer import OVERVIEW, SCREENING, BenchOptions
from conformance.app.bench.run import describe_host, run_bench
from conformance.app.context import load_context
from conformance.bench.comparison import SUSPICIOUS
from conformance.bench.stored import compare_with_known, load_stored_bench
from conformance.cli.output import json_option
from conformance.cli.words import CASES, CELLS
from conformance.files import write_atomically
from conformance.model.outcome import ExitCode
from conformance.report.bench.markdown import render_bench_markdown
from conformance.report.bench.text import describe_comparison, summarize_comparisons
from conformance.wording import plural

if TYPE_CHECKING:
    from collections.abc import Iterable

    from conformance.cli.output import Output
    from conformance.model.case import Case


@click.command("bench")
@click.argument("selection", nargs=-1, metavar="[SELECT]...", type=CASES)
@click.option(
    "--cell", "cells", multiple=True, metavar="SELECTOR", type=CELLS,
    help="A cell to measure in; two or more, of which neighbours are compared.",
)  # fmt: skip
@click.option(
    "--matrix", default=None, metavar="NAME|FILE", help="Measure in all cells of a matrix.",
)  # fmt: skip
@click.option(
    "--rounds", default=SCREENING, show_default=True, metavar="N", type=click.IntRange(1, 100),
    help="Rounds of all cells; what looks different then is measured again.",
)  # fmt: skip
@click.option(
    "--jobs", default=1, show_default=True, metavar="N", type=click.IntRange(1, 64),
    help="Measure so many cases at the same time; then only their processor time counts.",
)  # fmt: skip
@click.option(
    "--markdown", default=None, metavar="FILE", type=click.Path(path_type=Path),
    help="Write what differs as Markdown.",
)  # fmt: skip
@click.option(
    "--precision", default=2.0, show_default=True, metavar="PERCENT",
    type=click.FloatRange(0.1, 50),
    help="Measure what differs until its ratio is known to so many percent.",
)  # fmt: skip
@click.option(
    "--threshold", default=100 * SUSPICIOUS, show_default=True, metavar="PERCENT",
    type=click.FloatRange(min=1),
    help="Difference that is looked for; 2 percent less in the first rounds is measured again.",
)  # fmt: skip
@click.option(
    "--overview", is_flag=True,
    help="For many cells: one round of three sizes, and only what differs by half is measured "
    "again; instead of --rounds, --precision and --threshold.",
)  # fmt: skip
@click.option(
    "--scale", is_flag=True,
    help="Measure cases without sizes with arguments 1, 2, 4 and 8 times as long.",
)  # fmt: skip
@click.option(
    "--minutes", default=None, metavar="N", type=click.FloatRange(min=0, min_open=True),
    help="Begin no case after so many minutes; first those whose IRs differ in the newest run.",
)  # fmt: skip
@click.option(
    "--known", default=None, metavar="FILE", type=click.Path(path_type=Path),
    help="The --json of earlier nights: what differs there is no new difference.",
)  # fmt: skip
@json_option("the comparisons")
def command(
    *,
    selection: tuple[str, ...],
    cells: tuple[str, ...],
    matrix: str | None,
    rounds: int,
    precision: float,
    markdown: Path | None,
    threshold: float,
    jobs: int,
    overview: bool,
    scale: bool,
    minutes: float | None,
    known: Path | None,
    output: Output,
) -> int:
    """Compare time and memory of cases in two or more cells.

    SELECT is as for run, or a script, which is run as a whole. The default are the functions that
    the project lists, or else the family performance. Workers of all cells run side by
    side, and a case is measured in each in turn. What looks different is measured again, and only
    these measurements decide. Cases with sizes are measured at each, for the growth of their time.

    conformance bench --cell 0.8.1 --cell 0.8.2
    conformance bench 'performance/rows*' --cell 0.6.2 --cell 0.7.2 --cell latest
    conformance bench --matrix releases --overview --jobs 2 --markdown performance.md
    conformance bench train.py --cell 0.8.1 --cell latest
    conformance bench --cell 0.10.1 --cell 'path:/opt/jax-dev/bin/python'
    conformance bench --cell latest --cell nightly --minutes 5 --known time.json --json time.json

    Exit status: 0 no difference, or none that is new; 1 a difference; 70 internal error,
    130 interrupted: the cases until then are kept.
    """
    context = load_context()
    chosen = choose_measured_cases(context, selection)
    # One after the other, in the order of the options; a cell may be compared with itself.
    where = [cell for selector in cells for cell in context.select_cells(None, [selector])[0]]
    where += context.select_cells(matrix, ())[0] if matrix else ()
    host = describe_host(jobs)
    output.print(host)
    before = load_stored_bench(known).differences if known and known.exists() else ()
    timed: Iterable[Case] = chosen
    if minutes is not None:
        timed = limit_time(
            order_cases(context, chosen, where, datetime.now(UTC).date()), minutes * 60
        )
    asked = BenchOptions(precision=precision / 100, screening=rounds, threshold=threshold / 100)
    options = replace(OVERVIEW if overview else asked, jobs=jobs, scale=scale)
    found = run_bench(
        context, timed, where, options, lambda one: output.print(describe_comparison(one))
    )
    output.print("", *summarize_comparisons(found.comparisons))
    differences = compare_with_known(
        found.differences, before, {one.case for one in found.comparisons}
    )
    if known is not None:
        output.print(
            f"{plural(len(differences.new), 'case')} with a new difference, "
            f"{len(differences.all) - len(differences.new)} with one of earlier nights"
        )
    if markdown is not None:
        write_atomically(markdown, render_bench_markdown(found.comparisons).encode())
    output.write_json(found.to_json(host, differences.all))
    if not found.complete:
        output.print("interrupted: the cases above were measured")
        return ExitCode.INTERRUPTED
    return ExitCode.UNEXPECTED if differences.new else ExitCode.OK
