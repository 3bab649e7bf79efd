"""Where what a case shows changes, over all releases; and what it should be, as was seen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from conformance.engine.job_comparison import load_value
from conformance.judge.tolerance import Tolerance
from conformance.judge.values import compare_reference, compare_values
from conformance.model.outcome import Conformance, Outcome
from conformance.search.bisection import untried_points
from conformance.search.failures import Classes, ending, same_failure
from conformance.search.state import GOOD, PointKind, PointState
from conformance.triage.new.reference import expression

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from conformance.model.record import Record
    from conformance.model.value import Value
    from conformance.triage.new.bench import Bench
    from conformance.triage.new.trial import Tried

_SILENT = frozenset({Outcome.INFRA, Outcome.NOT_RUN})


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What a case shows over releases.

    Attributes:
        records: What came of it, by number of the cell.
        states: What that is: good is what the case should do.
        anchor: Number of the cell whose value is taken for right; None where the script states
            what is right, or nothing was seen that ran.
        reference: That value as an expression; empty where there is none, or it is too long.
    """

    records: Mapping[int, Record]
    states: Mapping[int, PointState]
    anchor: int | None
    reference: str

    @property
    def unstated(self) -> bool:
        """Whether values differ, and nothing says which is right."""
        if self.anchor is None or self.reference:
            return False
        ran = (n for n, record in self.records.items() if record.outcome is Outcome.OK)
        return any(self.states[number].kind is PointKind.BAD for number in ran)


def find_edges(
    tried: Tried, bench: Bench, good: int | None, told: Callable[[Sequence[int]], None]
) -> Seen:
    """Return what a case shows over all releases, the edges of each stretch tried.

    Args:
        tried: The case, and what came of it in some cells.
        bench: Where it is tried.
        good: Number of the cell in which it is right; None is the newest in which it runs.
        told: Told the numbers of the cells of each round.
    """
    records = dict(tried.records)
    ran = [number for number, record in records.items() if record.outcome is Outcome.OK]
    anchor = None
    if not (tried.draft.states or tried.draft.way.bare) and ran:
        anchor = good if good in ran else max(ran)
    right = None if anchor is None else load_value(bench.side(records[anchor]))
    states = _States(bench, right)
    known = {number: states.of(records[number]) for number in sorted(records)}
    while points := untried_points(known, bench.width, eager=True):
        told(points)
        found = bench.run([tried.case], points)[tried.case.name]
        records |= found
        known |= {number: states.of(record) for number, record in found.items()}
    text = "" if right is None else expression(right)
    return Seen(records=records, states=known, anchor=anchor, reference=text)


class _States:
    """What records show, those alike as one."""

    def __init__(self, bench: Bench, right: Value | None) -> None:
        self._bench, self._right = bench, right
        self._failures = Classes(same_failure)
        self._values: Classes[Value] = Classes(
            lambda value, known: compare_values(value, known, Tolerance()).agrees
        )

    def of(self, record: Record) -> PointState:
        if record.outcome in _SILENT:
            return PointState(PointKind.UNKNOWN, ending(record))
        if record.outcome is not Outcome.OK:
            return PointState(PointKind.OTHER, self._failures.first_of(ending(record)))
        if self._right is None:
            deviates = record.conformance is Conformance.DEVIATES
            return PointState(PointKind.BAD, "deviates") if deviates else GOOD
        value = load_value(self._bench.side(record))
        if compare_reference(value, self._right).agrees:
            return GOOD
        return PointState(PointKind.BAD, f"value {self._values.number_of(value)}")
