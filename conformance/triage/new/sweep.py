"""A case over all releases: the edges of each change, and the value that is taken for right."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from conformance.judge.tolerance import Tolerance
from conformance.judge.values import compare_reference, compare_values
from conformance.model.outcome import Conformance, Outcome
from conformance.search.bisection import untried_points
from conformance.search.equivalence import Classes, ending, same_failure
from conformance.search.predicates import GOOD, PointKind, PointState
from conformance.triage.new.reference import expression

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from conformance.model.record import Record
    from conformance.model.value import Value
    from conformance.triage.new.runner import CaseRunner
    from conformance.triage.new.trial import TriedDraft

_NOT_RUN: Final = frozenset({Outcome.INFRA, Outcome.NOT_RUN})


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """A case over releases.

    Attributes:
        records: The records, by number of the cell.
        states: Their states: good is what the case should do.
        anchor: Number of the cell whose value is taken for right; None where the script states
            what is right, or no cell ran the case.
        reference: That value as an expression; empty where there is none, or it is too long.
    """

    records: Mapping[int, Record]
    states: Mapping[int, PointState]
    anchor: int | None
    reference: str

    @property
    def is_ambiguous(self) -> bool:
        """Whether values differ, and nothing says which is right."""
        if self.anchor is None or self.reference:
            return False
        ran = (n for n, record in self.records.items() if record.outcome is Outcome.OK)
        return any(self.states[number].kind is PointKind.BAD for number in ran)


def sweep_releases(
    tried: TriedDraft, runner: CaseRunner, good: int | None, report: Callable[[Sequence[int]], None]
) -> Sweep:
    """Run a case over all releases, as far as it takes to find each change.

    Args:
        tried: The case, with its records in some cells.
        runner: Runs it.
        good: Number of the cell in which it is right; None is the newest in which it runs.
        report: Called with the numbers of the cells of each round.
    """
    records = dict(tried.records)
    ran = [number for number, record in records.items() if record.outcome is Outcome.OK]
    anchor = None
    if ran and not (tried.draft.states or tried.draft.options.bare):
        anchor = good if good in ran else max(ran)
    right = None if anchor is None else runner.value(records[anchor])
    classifier = _Classifier(runner, right)
    states = {number: classifier.state(records[number]) for number in sorted(records)}
    while points := untried_points(states, runner.width, eager=True):
        report(points)
        found = runner.run([tried.case], points)[tried.case.name]
        records |= found
        states |= {number: classifier.state(record) for number, record in found.items()}
    text = "" if right is None else expression(right)
    return Sweep(records=records, states=states, anchor=anchor, reference=text)


class _Classifier:
    """Gives records that show the same an equal state."""

    def __init__(self, runner: CaseRunner, right: Value | None) -> None:
        self._runner, self._right = runner, right
        self._failures = Classes(same_failure)
        self._values: list[Value] = []

    def state(self, record: Record) -> PointState:
        if record.outcome in _NOT_RUN:
            return PointState(PointKind.UNKNOWN, ending(record))
        if record.outcome is not Outcome.OK:
            return PointState(PointKind.OTHER, self._failures.first_of(ending(record)))
        if self._right is None:
            deviates = record.conformance is Conformance.DEVIATES
            return PointState(PointKind.BAD, "deviates") if deviates else GOOD
        value = self._runner.value(record)
        if compare_reference(value, self._right).agrees:
            return GOOD
        alike = (compare_values(value, known, Tolerance()).agrees for known in self._values)
        number = next((number for number, same in enumerate(alike) if same), None)
        if number is None:
            number = len(self._values)
            self._values.append(value)
        return PointState(PointKind.BAD, f"value {number}")
