"""Bisection of a target: the endpoints, every change between them, and the change once more."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from conformance.model.outcome import Outcome
from conformance.search.bisection import change_points, untried_points
from conformance.search.predicates import EndpointsError
from conformance.search.samples import Repeated
from conformance.search.state import PointKind
from conformance.triage.bisect.answer import BisectAnswer, last_good_before
from conformance.triage.bisect.resampling import Resampled, runs_needed

if TYPE_CHECKING:
    from collections import Counter

    from conformance.search.bisection import ChangePoint
    from conformance.search.points import Points
    from conformance.search.samples import PointPredicate
    from conformance.search.state import PointState
    from conformance.search.trials import Trials
    from conformance.triage.bisect.endpoints import EndpointSearch

    Flaky = dict[int, Counter[PointState]]

SLOW: Final = 5.0
"""Seconds from which a trial is worth being made before it is known to be needed."""


@dataclass(slots=True, kw_only=True)
class Bisection:
    """A bisection.

    Attributes:
        points: The cells along the axis, in order.
        trials: The trials of the points, by number.
        endpoints: Finds the endpoints, and the predicate that tells them apart.
        width: Trials at the same time.
    """

    points: Points
    trials: Trials[int]
    endpoints: EndpointSearch
    width: int = 1
    _also: list[ChangePoint] = field(default_factory=list)

    def run(self) -> BisectAnswer:
        """Search for every change.

        Raises:
            EndpointsError: If no predicate tells the endpoints apart, or one says nothing.
            UsageError: If there is no such fact.
            InfrastructureError: If an end cannot be tried now, or the disk refuses.
        """
        trials, predicate = self.trials, self._find_predicate()
        main: ChangePoint | None = None
        flaky: Flaky = {}
        # A point that turns out to be bad when it is tried again moves the change.
        while (found := self._search(predicate)) != main:
            main, flaky = found, self._confirm(predicate, found)
        resampled = None
        if isinstance(predicate, Repeated) and flaky:
            resampled = self._resample(predicate, flaky)
        main = self._main_change()
        before, after = (self.points[number] for number in (main.before, main.after))
        return BisectAnswer(
            points=self.points, labels=self.points.labels, reverse=self.endpoints.reverse,
            predicate=predicate, steps=trials.steps, states=trials.states,
            changes=change_points(trials.states), also=self._also, main=main, flaky=flaky,
            resampled=resampled, turned=self.endpoints.turned,
            versions=(trials.prober.versions(before), trials.prober.versions(after)),
        )  # fmt: skip

    def _find_predicate(self) -> PointPredicate:
        """Return the predicate, with all points that were tried for it decided."""
        trials = self.trials
        if trials.metric is not None:
            measured = trials.measure_endpoints(trials.metric, *self.endpoints.ends)
            trials.decide(measured, sorted(trials.samples))
            return measured
        predicate = self.endpoints.find_predicate()
        trials.decide(predicate, sorted(trials.samples))
        return self._replace_by_worse(predicate)

    def _replace_by_worse(self, predicate: Repeated) -> Repeated:
        """Return the predicate of a point that fails between ends that do not.

        That the outputs of both ends differ matters less than an error in between.
        """
        first = self._search(predicate)
        reverse, trials = self.endpoints.reverse, self.trials
        good = last_good_before(trials.states, first, reverse=reverse)
        if self._is_asked or trials.record(good).outcome is not Outcome.OK:
            return predicate
        worse = self.endpoints.worse_than(good, first.before if reverse else first.after)
        if worse is None:
            return predicate
        self._also.append(first)
        trials.announced.update(trials.samples)  # they were reported
        trials.states.clear()
        trials.decide(worse, sorted(trials.samples))
        return worse

    @property
    def _is_asked(self) -> bool:
        """Whether the options name the predicate."""
        return bool(self.endpoints.when or self.endpoints.fact)

    def _search(self, predicate: PointPredicate) -> ChangePoint:
        """Try points until every change is between neighbours; return the main one."""
        slow = max(
            side.record.seconds.get("job", 0.0)
            for samples in self.trials.samples.values()
            for side in samples
        )
        while points := untried_points(self.trials.states, self.width, eager=slow >= SLOW):
            self.trials.decide(predicate, points)
        return self._main_change()

    def _main_change(self) -> ChangePoint:
        """Return the change from good to bad that is nearest to the good end."""
        states, reverse = self.trials.states, self.endpoints.reverse
        good = [n for n, state in states.items() if state.kind is PointKind.GOOD]
        changes = change_points(states)
        found = [
            number
            for number, change in enumerate(changes)
            if states[change.before if reverse else change.after].kind is PointKind.BAD
            and any(n >= change.after if reverse else n <= change.before for n in good)
        ]
        main = found[-1] if reverse else found[0]
        if reverse or self._is_asked or not self.trials.fails(changes[main].after):
            return changes[main]
        # A target that works at the good end is bad from its first failure of any kind on, if
        # it does not work again before it fails as the bad end does.
        first = main
        while self._is_other_failure(changes[first].before):
            if first == 0:
                return changes[main]
            first -= 1
        before = changes[first].before
        works = states[before].kind is PointKind.GOOD and not self.trials.fails(before)
        return changes[first if works else main]

    def _is_other_failure(self, point: int) -> bool:
        return self.trials.states[point].kind is PointKind.OTHER and self.trials.fails(point)

    def _confirm(self, predicate: PointPredicate, main: ChangePoint) -> Flaky:
        """Try both sides of the change once more; return the points that are good only at times.

        A point that is bad each time, in any way, is bad.
        """
        flaky = self.trials.confirm(predicate, main.before, main.after)
        good_at_times = {}
        for point, seen in flaky.items():
            if any(state.kind is PointKind.GOOD for state in seen):
                good_at_times[point] = seen
            else:
                self._note_bad(point, seen)
        return good_at_times

    def _note_bad(self, point: int, seen: Counter[PointState]) -> None:
        """Take a point for bad if it was seen to be bad."""
        bad = [state for state in seen if state.kind is PointKind.BAD]
        if bad:
            self.trials.states[point] = bad[-1]

    def _resample(self, predicate: Repeated, flaky: Flaky) -> Resampled | None:
        """Try the last good point so often that it is hardly good by chance.

        Each point that turns out to be bad moves the search towards the good end.

        Raises:
            EndpointsError: If the good end itself is bad at times.
        """
        rates = [
            sum(count for state, count in seen.items() if state.kind is PointKind.BAD)
            / seen.total()
            for seen in flaky.values()
        ]
        rate = min(filter(None, rates), default=0.0)
        if not rate:
            return None
        often = Repeated(predicate.predicate, max(runs_needed(rate), predicate.repeat))
        for point, seen in flaky.items():
            self._note_bad(point, seen)
        states, samples = self.trials.states, self.trials.samples
        end = self.endpoints.ends[0]
        while states[end].kind is PointKind.GOOD:
            main = self._search(often)
            good = main.after if self.endpoints.reverse else main.before
            if states[good].kind is not PointKind.GOOD:
                return None
            if self.trials.decide(often, [good])[good].kind is PointKind.GOOD:
                return Resampled(runs=len(samples[good]), rate=rate)
        raise EndpointsError(
            f"{self.points.labels[end]} is bad, too, at times: {often.summarize(samples[end])}; "
            "name another good end"
        )
