"""The page of root causes: unexpected jobs in groups, the largest first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from conformance.report.site.addresses import CAUSES, repro_file
from conformance.report.site.rendering import render
from conformance.report.text import make_rerun_command
from conformance.report.tracebacks import collect_stacks

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from conformance.engine.runs.root_causes import RootCause
    from conformance.model.record import Record
    from conformance.report.report import CauseEvidence, Report
    from conformance.report.tracebacks import Stack


@dataclass(frozen=True, slots=True, kw_only=True)
class CauseView:
    """A root cause, as a page shows it.

    Attributes:
        record: The job whose details are shown: the first, or the first of a case.
        reason: The reason.
        members: Ids of cells by case, in order.
        anchor: Its anchor on the page of root causes.
        command: The command that runs the job again.
        evidence: Result of triage, None if there was none.
        stacks: Exceptions of the job, empty if it raised none.
    """

    record: Record
    reason: str
    members: Mapping[str, Sequence[str]]
    anchor: str
    command: str
    evidence: CauseEvidence | None
    stacks: tuple[Stack, ...]

    @property
    def jobs(self) -> int:
        """Number of jobs."""
        return sum(map(len, self.members.values()))


def collect_causes(report: Report) -> tuple[list[CauseView], list[CauseView]]:
    """Return the root causes about JAX, and the root causes that say nothing about JAX.

    Args:
        report: The runs to report.
    """
    views: dict[bool, list[CauseView]] = {True: [], False: []}
    for cause in report.causes:
        # Numbered within each part of the page, as `collect_causes_by_case` numbers its links.
        found = views[cause.is_about_jax]
        anchor = f"{'cause' if cause.is_about_jax else 'infra'}-{len(found) + 1}"
        found.append(_make_view(report, cause, anchor, cause.records[0]))
    return views[True], views[False]


def collect_causes_by_case(report: Report) -> dict[str, list[CauseView]]:
    """Return the root causes of each case with unexpected jobs, the largest first.

    Args:
        report: The report; its order of causes is that of the page of root causes.
    """
    found: dict[str, list[CauseView]] = {}
    telling = (cause for cause in report.causes if cause.is_about_jax)
    for number, cause in enumerate(telling, 1):
        # Reversed, so that the first record of a case is the one that remains.
        firsts = {record.case: record for record in reversed(cause.records)}
        for case, record in firsts.items():
            found.setdefault(case, []).append(_make_view(report, cause, f"cause-{number}", record))
    return found


def _make_view(report: Report, cause: RootCause, anchor: str, record: Record) -> CauseView:
    members: dict[str, list[str]] = {}
    for one in cause.records:
        members.setdefault(one.case, []).append(one.cell)
    return CauseView(
        record=record,
        reason=cause.reason,
        members=members,
        anchor=anchor,
        command=make_rerun_command(
            record.case, report.cases[record.case], report.selector(record.cell)
        ),
        evidence=report.evidence.get(cause.id),
        stacks=collect_stacks(report.jobs[record.case, record.cell], report.roots),
    )


def render_causes_pages(report: Report) -> Iterator[tuple[str, bytes]]:
    """Yield the page of root causes, and the files of their reproductions.

    Args:
        report: The runs to report.
    """
    telling, indeterminate = collect_causes(report)
    data = {
        "causes": telling,
        "indeterminate": indeterminate,
        "not_run": report.not_run,
        "records": report.records,
    }
    yield CAUSES, render("causes.html", CAUSES, data)
    for cause in telling:
        if cause.evidence is not None and cause.evidence.reproduction:
            text = cause.evidence.reproduction.encode("utf-8", "replace")
            yield repro_file(cause.evidence.found.cause), text
