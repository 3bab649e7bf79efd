"""Searching for the packages that made a change of an upgrade."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from conformance.engine.transitions import ENDING
from conformance.errors import ConformanceError
from conformance.model.outcome import Outcome
from conformance.search.failures import ending, same_failure
from conformance.triage.blame.render import doubts
from conformance.triage.upgrade.culprits import Culprits
from conformance.triage.upgrade.effect import Effect, told

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.engine.job import PlannedCell
    from conformance.triage.blame.answer import BlameAnswer
    from conformance.triage.upgrade.compared import Compared, Step

    Search = Callable[..., BlameAnswer]


class Asked(NamedTuple):
    """What tells both sides of a change apart, as the options of `conformance blame` say it.

    Attributes:
        when: The predicate, empty for whatever does.
        fact: The fact, empty for none.
    """

    when: str = ""
    fact: str = ""


def asked_of(step: Step) -> Asked:
    """Return the question that tells both sides of a change apart.

    Args:
        step: The change.
    """
    if step.effect is Effect.LARGER:
        return Asked(fact=told(step.change).artifact)
    records = step.change.before.record, step.change.after.record
    failed = all(record.outcome is not Outcome.OK for record in records)
    if failed and ENDING in step.change.changed and not same_failure(*map(ending, records)):
        return Asked(when="ending")
    return Asked()


def sides_of(one: Compared, step: Step) -> tuple[PlannedCell, PlannedCell]:
    """Return the cells of the jobs that a change is between.

    Args:
        one: The case.
        step: The change.
    """
    cells = {planned.cell.id: planned for planned in one.axis.cells}
    return cells[step.change.before.record.cell], cells[step.change.after.record.cell]


def culprits_of(one: Compared, step: Step, search: Search) -> Culprits:
    """Search for the packages that made a change; what keeps the search from an answer is told.

    Args:
        one: The case.
        step: The change.
        search: Searches: `conformance.triage.blame.cases.blame_case`, but for the case, its cells
            and the question.
    """
    before, after = (planned.cell for planned in sides_of(one, step))
    asked = asked_of(step)
    try:
        found = search(one.case, (before, after), when=asked.when, fact=asked.fact)
    except ConformanceError as error:
        return Culprits(case=one.case.id, untold=str(error))
    untold = "; ".join(doubts(found))
    if not found.confirmed:
        return Culprits(case=one.case.id, untold=untold)
    return Culprits(
        case=one.case.id,
        guilty=tuple(found.packages_of(guilty.culprits) for guilty in found.guilty),
        beside=found.packages_of(found.guilty[0].needed),
        untold=untold,
    )
