"""The result of an upgrade: the changes of each case between both ends, and their culprits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from packaging.version import Version

from conformance.engine.runs.transitions import ENDING
from conformance.errors import ConformanceError
from conformance.model.outcome import Outcome
from conformance.search.endpoints import ANY_PREDICATE, PredicateOptions
from conformance.search.equivalence import format_ending, is_same_failure
from conformance.triage.blame.render import list_doubts
from conformance.triage.upgrade.effect import BREAKING, Effect, classify_change, show_change

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.cells.cell import Cell
    from conformance.engine.job import PlannedCell
    from conformance.engine.runs.transitions import Transition
    from conformance.model.case import Case
    from conformance.model.run_files import CulpritCommit
    from conformance.search.axes import PackageMove
    from conformance.triage.blame.blame import BlameAnswer

    Search = Callable[[Case, tuple[Cell, Cell], PredicateOptions], BlameAnswer]


@dataclass(frozen=True, slots=True, kw_only=True)
class Culprits:
    """The packages that made a change, as far as known.

    Attributes:
        case: Id of the tried case, which represents all cases with the same change.
        guilty: Sets of packages, each of which is enough; empty if the search has no answer.
        needed: Packages without which the first set cannot be moved.
        doubts: Reasons why the answer is incomplete; empty if it is complete.
        commits: The commit of jax that made the change; several if one of them did.
        remarks: Lines about the packages, e.g. the revisions of XLA between two releases.
        layer: The layer that made the change, with the reason; empty if not searched for.
    """

    case: str
    guilty: tuple[tuple[PackageMove, ...], ...] = ()
    needed: tuple[PackageMove, ...] = ()
    doubts: str = ""
    commits: tuple[CulpritCommit, ...] = ()
    remarks: tuple[str, ...] = ()
    layer: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class UpgradeAxis:
    """The cells between both ends, on one platform.

    Attributes:
        platform: The platform.
        cells: The cells, from the old to the new end.
        labels: Name of each cell: its release, or the name of the end.
    """

    platform: str
    cells: tuple[PlannedCell, ...]
    labels: tuple[str, ...]

    @property
    def ends(self) -> tuple[str, str]:
        """The names of both ends."""
        return self.labels[0], self.labels[-1]

    @property
    def coarse(self) -> frozenset[int]:
        """Places tried before intervals are halved: the last of each minor release."""
        # A dictionary keeps the last place of each minor release.
        minors = {Version(cell.release).release[:2]: n for n, cell in enumerate(self.cells)}
        return frozenset(minors.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class UpgradeStep:
    """A change between two points of an upgrade.

    Attributes:
        change: The jobs before and after the change.
        effect: Effect of the change.
        before: Place of the job before the change on the axis.
        after: Place of the job after the change.
        culprits: The packages that made the change, if they were searched for.
    """

    change: Transition
    effect: Effect
    before: int
    after: int
    culprits: Culprits | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedCase:
    """The comparison of both ends for a case on a platform.

    Attributes:
        case: The case that changed.
        axis: The platform and its cells.
        whole: The change between both ends; None if they cannot be compared.
        steps: The changes between neighbouring points, in order; empty if nothing differs.
        refusal: Reason why both ends cannot be compared, empty if they can.
        flaky: Disagreement of two attempts of a job; such a case has no other result.
        tried: Number of points at which the case was tried.
        untried: Number of points to which the case applies but where it was not tried.
    """

    case: Case
    axis: UpgradeAxis
    whole: Transition | None = None
    steps: tuple[UpgradeStep, ...] = ()
    refusal: str = ""
    flaky: str = ""
    tried: int = 0
    untried: int = 0

    @property
    def effect(self) -> Effect:
        """The effect of the whole upgrade, without changes that were undone on the way."""
        return Effect.UNCHANGED if self.whole is None else classify_change(self.whole)

    @property
    def passing(self) -> UpgradeStep | None:
        """The first change that breaks the case, if it is not broken at the new end."""
        if self.effect in BREAKING:
            return None
        # A break that a later release undoes still concerns projects that stop in between.
        return next((step for step in self.steps if step.effect in BREAKING), None)

    @property
    def decisive(self) -> UpgradeStep | None:
        """The change that decides the effect: the last change with that effect, else the last."""
        same = [step for step in self.steps if step.effect is self.effect]
        return next(reversed(same or self.steps), None)

    def find_cells(self, step: UpgradeStep) -> tuple[PlannedCell, PlannedCell]:
        """Return the cells of the jobs before and after a change."""
        cells = {planned.cell.id: planned for planned in self.axis.cells}
        return cells[step.change.before.record.cell], cells[step.change.after.record.cell]


def choose_predicate_options(step: UpgradeStep) -> PredicateOptions:
    """Return the options of the predicate that separates both sides of a change.

    Args:
        step: The change.
    """
    # Costs do not change any other predicate, so their fact is named.
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


def search_culprits(compared: ComparedCase, step: UpgradeStep, search: Search) -> Culprits:
    """Search for the packages that made a change; an error becomes a part of the answer.

    Args:
        compared: The case that changed.
        step: The change.
        search: Function that searches for culprits between two cells of a case.
    """
    before, after = (planned.cell for planned in compared.find_cells(step))
    try:
        found = search(compared.case, (before, after), choose_predicate_options(step))
    except ConformanceError as error:
        return Culprits(case=compared.case.id, doubts=str(error))
    doubts = "; ".join(list_doubts(found))
    # A flaky answer would name innocent packages in a report.
    if not found.is_confirmed:
        return Culprits(case=compared.case.id, doubts=doubts)
    return Culprits(
        case=compared.case.id,
        guilty=tuple(found.list_packages(guilty.culprits) for guilty in found.guilty),
        needed=found.list_packages(found.guilty[0].needed),
        doubts=doubts,
    )
