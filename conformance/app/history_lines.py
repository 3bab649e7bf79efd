"""The history of runs as lines of text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conformance.report.text import flatten, format_moment, join_names
from conformance.wording import plural

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from conformance.engine.regression_tracker import Regression
    from conformance.store.retention import RemovedRuns
    from conformance.store.snapshot import CaseSpan, StoredRun

_LONGEST = 160


def run_lines(runs: Sequence[StoredRun]) -> Iterator[str]:
    """Yield a line for each run, the oldest first.

    Args:
        runs: The runs.
    """
    for run in runs:
        counts = ", ".join(f"{number} {verdict}" for verdict, number in run.counts.items())
        what = " ".join(filter(None, (run.matrix, run.part)))
        said = f"{run.unexpected} unexpected of {sum(run.counts.values())} ({counts})"
        yield f"{run.number:>4}  {format_moment(run.started)}  {run.name}  {what}  {said}"
    if not runs:
        yield "no run was added yet; conformance history add reports/runs"


def case_lines(spans: Mapping[str, Sequence[CaseSpan]]) -> Iterator[str]:
    """Yield the spans of a case by place.

    Args:
        spans: What runs showed, by place.
    """
    for place, found in spans.items():
        yield place
        for span in found:
            runs = f"{span.first}" if span.first == span.last else f"{span.first}..{span.last}"
            said = "did not run" if span.state is None else str(span.state.verdict)
            reason = "" if span.state is None else flatten(span.state.reason, _LONGEST)
            yield f"  {runs:>11}  {said}" + (f": {reason}" if reason else "")


def regression_lines(regressions: Sequence[Regression]) -> Iterator[str]:
    """Yield what is told of regressions.

    Args:
        regressions: The regressions.
    """
    for one in regressions:
        since = f"since run {one.first}, last seen in {one.last}"
        if one.fixed_in is not None:
            since = f"{since}, fixed in {one.fixed_in}"
        where = join_names(list(one.open_places or one.places))
        issue = f", {one.issue}" if one.issue else ""
        yield f"{one.status:9}  {one.id}  {one.case}: {one.state.verdict} {since}{issue}"
        yield f"           {where}: {flatten(one.state.reason, _LONGEST)}"
    if not regressions:
        yield "nothing is open"


def pruned_line(pruned: RemovedRuns) -> str:
    """Return what pruning removed, in a line.

    Args:
        pruned: The counts.
    """
    return (
        f"removed {plural(pruned.runs, 'run')}, {plural(pruned.jobs, 'job')}, "
        f"{plural(pruned.changes, 'change')}"
    )
