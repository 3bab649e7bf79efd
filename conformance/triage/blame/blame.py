"""Blame: the search for the packages that make a difference between two environments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from conformance.engine.runs.stored_job import StoredJob
from conformance.errors import ConformanceError
from conformance.model.outcome import ExitCode
from conformance.search.answers import SearchAnswer
from conformance.search.ddmin import SetResult, SetTest, classify_set, minimize_all
from conformance.search.endpoints import (
    ANY_PREDICATE,
    EndpointsError,
    PredicateOptions,
    choose_predicate,
)
from conformance.search.point_predicates import RepeatedPredicate
from conformance.search.predicates import PointKind
from conformance.triage.blame.mixtures import Unit

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from conformance.search.axes import PackageMove
    from conformance.search.ddmin import MinimalSet
    from conformance.search.point_predicates import PointPredicate
    from conformance.search.trials import CellTrials
    from conformance.triage.blame.mixtures import Mixtures

MovedUnits = frozenset[Unit]
"""The units of a mixture that have the versions of the new environment."""
NONE: Final[MovedUnits] = frozenset()
"""The mixture without moved units: the old environment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BlameAnswer(SearchAnswer[MovedUnits]):
    """The answer of a blame.

    The state of a mixture is good if it behaves like the old environment.

    Attributes:
        mixtures: The mixtures of both environments.
        guilty: Disjoint minimal sets of units, each of which is enough.
        without_culprits: The result with all units moved except culprits and their dependents.
        reverse: Whether the old environment is bad by the predicate.
    """

    mixtures: Mixtures
    guilty: Sequence[MinimalSet[Unit]]
    without_culprits: SetResult
    reverse: bool

    @property
    def culprits(self) -> tuple[PackageMove, ...]:
        """The packages of the first minimal set."""
        return self.list_packages(self.guilty[0].culprits)

    def list_packages(self, units: Iterable[Unit]) -> tuple[PackageMove, ...]:
        """Return the packages of units, in order."""
        ordered = self.mixtures.units.sort(units)
        return tuple(self.mixtures.packages[name] for unit in ordered for name in unit)


class StandInError(ConformanceError):
    """An environment that behaves differently from the original it replaces."""

    exit_code = ExitCode.UNEXPECTED


@dataclass(slots=True, kw_only=True)
class Blame:
    """The search for the packages that make a difference.

    Attributes:
        mixtures: The mixtures of both environments.
        trials: The trials of the mixtures.
        options: The options that name the predicate.
    """

    mixtures: Mixtures
    trials: CellTrials[MovedUnits]
    options: PredicateOptions = ANY_PREDICATE

    @property
    def _all(self) -> MovedUnits:
        return frozenset(self.mixtures.units.order)

    def run(self) -> BlameAnswer:
        """Search for the culprits, and confirm them.

        Raises:
            UsageError: If the fact does not exist.
            EndpointsError: If no predicate separates the ends, or an end cannot be compared.
            StandInError: If an end behaves differently from the environment that it replaces.
            InfrastructureError: If something cannot be tried now, or the disk refuses.
        """
        predicate = self._find_predicate()
        self.trials.decide(predicate, (NONE, self._all))
        # Before the search: a stand-in that behaves differently makes every mixture meaningless.
        self._check_originals(predicate)

        def test(units: tuple[Unit, ...]) -> SetResult:
            moved = frozenset(units)
            state = self.trials.decide(predicate, [moved])[moved]
            return classify_set(state, enough=PointKind.BAD)

        # The predicate separates the ends, so the new environment needs no trial.
        known = {self._all: SetResult.ENOUGH}
        guilty, remainder = minimize_all(SetTest(self.mixtures.units, test, known))
        # Both sides of the answer are confirmed: the culprits moved, and a mixture without a
        # culprit.
        sides = self._find_good_mixture(guilty[0]), guilty[0].units
        return BlameAnswer(
            predicate=predicate, steps=self.trials.steps, mixtures=self.mixtures, guilty=guilty,
            without_culprits=remainder,
            reverse=isinstance(predicate, RepeatedPredicate) and predicate.inverted,
            flaky=self.trials.confirm(predicate, *sides),
        )  # fmt: skip

    def _find_predicate(self) -> PointPredicate:
        """Try both ends, and return the predicate that separates them.

        Either end may be good: both directions are tried.
        """
        trials = self.trials
        if trials.metric is not None:
            return trials.measure_endpoints(trials.metric, NONE, self._all)
        trials.try_endpoints(NONE, self._all)
        try:
            forth = trials.make_endpoints(NONE, self._all)
            return RepeatedPredicate(choose_predicate(forth, self.options))
        except EndpointsError as error:
            try:
                back = trials.make_endpoints(self._all, NONE)
                return RepeatedPredicate(choose_predicate(back, self.options), inverted=True)
            except EndpointsError:
                # The error about the direction that the user named.
                raise error from None

    def _check_originals(self, predicate: PointPredicate) -> None:
        """Refuse an end that behaves differently from the environment that it replaces."""
        for units, end in zip((NONE, self._all), self.mixtures.ends, strict=True):
            if (original := end.original) is None:
                continue
            (sample,) = self.trials.prober.probe([original.planned])
            self.trials.keep(sample)
            samples = [StoredJob(sample, self.trials.blobs)]
            state = predicate.classify(samples)
            # Both ends are good or bad: any other state differs from both.
            if state is not None and state.kind is not self.trials.states[units].kind:
                shown = predicate.summarize(self.trials.samples[units])
                raise StandInError(
                    f"{original.planned.cell.id} shows {predicate.summarize(samples)}, "
                    f"{original.stand_in} shows {shown}: {original.other}"
                )

    def _find_good_mixture(self, guilty: MinimalSet[Unit]) -> MovedUnits:
        """Return a mixture without one culprit that behaves like the old environment."""
        dependents = self.mixtures.units.add_dependents
        without = (guilty.units - dependents([unit]) for unit in guilty.culprits)
        states = self.trials.states
        return next(
            units
            for units in (*without, NONE)
            if units in states and states[units].kind is PointKind.GOOD
        )
