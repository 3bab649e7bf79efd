"""Root causes: everything unexpected, grouped by what is the same about it, the largest first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from conformance.model.outcome import Verdict
from conformance.report.commands import rerun
from conformance.report.site.addresses import CAUSES, repro_file
from conformance.report.site.rendering import render
from conformance.report.tracebacks import stacks_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conformance.engine.root_causes import RootCause
    from conformance.model.record import Record
    from conformance.report.looked_into import LookedInto
    from conformance.report.report import Report
    from conformance.report.tracebacks import Stack


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """Jobs that are unexpected for the same reason.

    Attributes:
        verdict: Theirs.
        reason: The reason.
        example: The first of them.
        command: What runs it again.
        members: Case id and cells of each case, in order.
        evidence: What was found out about it, None where nobody looked.
        stacks: Exceptions of the first job, empty if it raised none.
    """

    verdict: Verdict
    reason: str
    example: Record
    command: str
    members: tuple[tuple[str, tuple[str, ...]], ...]
    evidence: LookedInto | None = None
    stacks: tuple[Stack, ...] = ()

    @property
    def jobs(self) -> int:
        """How many jobs there are."""
        return sum(len(cells) for _, cells in self.members)


def causes_of(report: Report) -> tuple[list[Cause], list[Cause]]:
    """Return the root causes, and those that say nothing about JAX.

    Args:
        report: What is told.
    """
    found = [_cause(report, cause) for cause in report.causes]
    telling = [cause for cause in found if cause.verdict is not Verdict.INFRA]
    return telling, [cause for cause in found if cause.verdict is Verdict.INFRA]


def _cause(report: Report, cause: RootCause) -> Cause:
    cells: dict[str, list[str]] = {}
    for record in cause.records:
        cells.setdefault(record.case, []).append(record.cell)
    example = cause.records[0]
    return Cause(
        verdict=example.verdict,
        reason=cause.reason,
        example=example,
        command=rerun(example.case, report.cases[example.case], report.selector(example.cell)),
        members=tuple((case, tuple(found)) for case, found in cells.items()),
        evidence=report.evidence.get(cause.id),
        stacks=_stacks(report, example),
    )


def _stacks(report: Report, record: Record) -> tuple[Stack, ...]:
    return stacks_of(report.jobs[record.case, record.cell], report.roots)


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseCause:
    """A root cause of a case's unexpected jobs.

    Attributes:
        record: First of the case's unexpected jobs with this cause.
        cells: Ids of the cells of all of them.
        anchor: Anchor of the cause on the page of root causes.
        shared: Number of other cases with the same cause.
        evidence: Result of triage, None if there was none.
        stacks: Exceptions of that job, empty if it raised none.
    """

    record: Record
    cells: tuple[str, ...]
    anchor: str
    shared: int
    evidence: LookedInto | None
    stacks: tuple[Stack, ...] = ()


def causes_by_case(report: Report) -> dict[str, list[CaseCause]]:
    """Return the root causes of each case with unexpected jobs, the largest first.

    Args:
        report: The report; its order of causes is that of the page of root causes.
    """
    found: dict[str, list[CaseCause]] = {}
    telling = (cause for cause in report.causes if cause.telling)
    for number, cause in enumerate(telling, 1):
        records: dict[str, list[Record]] = {}
        for record in cause.records:
            records.setdefault(record.case, []).append(record)
        for case, own in records.items():
            found.setdefault(case, []).append(
                CaseCause(
                    record=own[0],
                    cells=tuple(record.cell for record in own),
                    anchor=f"cause-{number}",
                    shared=len(records) - 1,
                    evidence=report.evidence.get(cause.id),
                    stacks=_stacks(report, own[0]),
                )
            )
    return found


def causes_pages(report: Report) -> Iterator[tuple[str, bytes]]:
    """Yield the page of root causes, and the files that show them.

    Args:
        report: What is told.
    """
    telling, indeterminate = causes_of(report)
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
