"""Searching for the packages that made a change of an upgrade."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conformance.engine.transitions import ENDING
from conformance.errors import ConformanceError
from conformance.model.outcome import Outcome
from conformance.search.endpoints import ANY_PREDICATE, PredicateOptions
from conformance.search.equivalence import format_ending, is_same_failure
from conformance.triage.blame.render import list_doubts
from conformance.triage.upgrade.comparison import Culprits
from conformance.triage.upgrade.effect import Effect, show_change

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.cells.cell import Cell
    from conformance.engine.job import PlannedCell
    from conformance.model.case import Case
    from conformance.triage.blame.blame import BlameAnswer
    from conformance.triage.upgrade.comparison import ComparedCase, UpgradeStep

    Search = Callable[[Case, tuple[Cell, Cell], PredicateOptions], BlameAnswer]


def choose_predicate_options(step: UpgradeStep) -> PredicateOptions:
    """Return the options of the predicate that separates both sides of a change.

    Args:
        step: The change.
    """
    if step.effect is Effect.LARGER:
        return PredicateOptions(fact=show_change(step.change).artifact)
    records = step.change.before.record, step.change.after.record
    failed = all(record.outcome is not Outcome.OK for record in records)
    if (
        failed
        and ENDING in step.change.changed
        and not is_same_failure(*map(format_ending, records))
    ):
        return PredicateOptions(when="ending")
    return ANY_PREDICATE


def find_cells(compared: ComparedCase, step: UpgradeStep) -> tuple[PlannedCell, PlannedCell]:
    """Return the cells of the jobs that a change is between.

    Args:
        compared: The case that changed.
        step: The change.
    """
    cells = {planned.cell.id: planned for planned in compared.axis.cells}
    return cells[step.change.before.record.cell], cells[step.change.after.record.cell]


def search_culprits(compared: ComparedCase, step: UpgradeStep, search: Search) -> Culprits:
    """Search for the packages that made a change; an error becomes a part of the answer.

    Args:
        compared: The case that changed.
        step: The change.
        search: Searches in two cells of a case, by the predicate that the options name.
    """
    before, after = (planned.cell for planned in find_cells(compared, step))
    try:
        found = search(compared.case, (before, after), choose_predicate_options(step))
    except ConformanceError as error:
        return Culprits(case=compared.case.id, doubts=str(error))
    doubts = "; ".join(list_doubts(found))
    if not found.confirmed:
        return Culprits(case=compared.case.id, doubts=doubts)
    return Culprits(
        case=compared.case.id,
        guilty=tuple(found.list_packages(guilty.culprits) for guilty in found.guilty),
        needed=found.list_packages(found.guilty[0].needed),
        doubts=doubts,
    )
