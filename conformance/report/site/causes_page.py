"""Root causes: everything unexpected, grouped by what is the same about it, the largest first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from conformance.engine.causes import root_causes
from conformance.model.outcome import Verdict
from conformance.report.site.addresses import CAUSES
from conformance.report.site.rendering import render

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from conformance.model.record import Record
    from conformance.report.report import Report


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """Jobs that are unexpected for the same reason.

    Attributes:
        verdict: Theirs.
        reason: The reason.
        example: The first of them.
        cases: How many cases they are of.
        members: Case id and cells of each case, in order.
    """

    verdict: Verdict
    reason: str
    example: Record
    members: tuple[tuple[str, tuple[str, ...]], ...]

    @property
    def jobs(self) -> int:
        """How many jobs there are."""
        return sum(len(cells) for _, cells in self.members)


def causes_of(records: Iterable[Record]) -> tuple[list[Cause], list[Cause]]:
    """Return the root causes, and those that say nothing about JAX.

    Args:
        records: Judged records.
    """
    found = [_cause(cause.reason, cause.records) for cause in root_causes(records)]
    telling = [cause for cause in found if cause.verdict is not Verdict.INFRA]
    return telling, [cause for cause in found if cause.verdict is Verdict.INFRA]


def _cause(reason: str, records: Sequence[Record]) -> Cause:
    cells: dict[str, list[str]] = {}
    for record in records:
        cells.setdefault(record.case, []).append(record.cell)
    return Cause(
        verdict=records[0].verdict,
        reason=reason,
        example=records[0],
        members=tuple((case, tuple(found)) for case, found in cells.items()),
    )


def causes_pages(report: Report) -> Iterator[tuple[str, bytes]]:
    """Yield the page of root causes.

    Args:
        report: What is told.
    """
    telling, indeterminate = causes_of(report.records)
    data = {
        "causes": telling,
        "indeterminate": indeterminate,
        "not_run": report.not_run,
        "records": report.records,
    }
    yield CAUSES, render("causes.html", CAUSES, data)
