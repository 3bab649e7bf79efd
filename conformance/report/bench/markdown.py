"""Changes of time and memory by cell, as Markdown: mostly ratios, as times are of one host."""

from __future__ import annotations

from math import exp, log
from statistics import fmean
from typing import TYPE_CHECKING

from conformance.bench.measured import Clock
from conformance.report.bench.text import count_comparisons, describe_alarm, format_ratio
from conformance.report.grouping import group_by
from conformance.report.markup import to_code, to_table, wrap
from conformance.wording import plural

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from conformance.bench.comparison import CaseComparison

HEAD = (
    "Each cell is compared with the one before: the geometric mean of the ratios of processor time "
    "over all cases, and the cases that differ. `conformance bench` explains what counts."
)
SHOWN = ("trace", "lower", "compile", "first", "run", "dispatch")


def render_bench_markdown(
    comparisons: Sequence[CaseComparison], title: str = "Time and memory"
) -> str:
    """Return a page with all comparisons, the newest cells first.

    Args:
        comparisons: The comparisons.
        title: Title of the page.
    """
    counts = count_comparisons(comparisons)
    by_cells = group_by(comparisons, key=lambda one: one.cells)
    parts = [f"# {title}", wrap(HEAD), wrap(f"{counts}."), _render_means(by_cells)]
    for cells in reversed(by_cells):
        parts += _render_cells(cells, by_cells[cells])
    return "\n\n".join(parts) + "\n"


def _render_means(by_cells: dict[tuple[str, str], list[CaseComparison]]) -> str:
    rows = [["cell", *SHOWN, "cases that differ"]]
    for cells in reversed(by_cells):
        found = by_cells[cells]
        means = [_average(found, phase) for phase in SHOWN]
        rows.append([to_code(cells[1]), *means, str(sum(bool(one.alarms) for one in found))])
    return to_table(rows)


def _average(comparisons: Sequence[CaseComparison], phase: str) -> str:
    ratios = [
        log(one.ratio.estimate)
        for comparison in comparisons
        for one in comparison.time
        if (one.phase, one.clock) == (phase, Clock.CPU)
    ]
    return format_ratio(exp(fmean(ratios))) if ratios else ""


def _render_cells(cells: tuple[str, str], comparisons: Sequence[CaseComparison]) -> Iterator[str]:
    alarmed = [one for one in comparisons if one.alarms]
    failed = [one for one in comparisons if one.problem]
    if not alarmed and not failed:
        return
    yield f"## {cells[1]}"
    yield f"Compared with {to_code(cells[0])}."
    lines = [
        f"- {to_code(one.case)}{'' if one.size is None else f' at {one.size}'}: "
        f"{'; '.join(map(describe_alarm, one.alarms))}"
        for one in alarmed
    ]
    if failed:
        names = ", ".join(to_code(one.case) for one in failed)
        lines.append(f"- {plural(len(failed), 'case')} not measured: {names}")
    yield "\n".join(lines)
