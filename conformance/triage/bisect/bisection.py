"""Bisection of a target: the endpoints, every change between them, and a confirmation."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING, Final

from conformance.model.outcome import Outcome
from conformance.search.answers import SearchAnswer
from conformance.search.bisection import choose_untried_points, find_change_points
from conformance.search.endpoints import EndpointsError
from conformance.search.point_predicates import MetricPredicate, RepeatedPredicate
from conformance.search.predicates import PointKind
from conformance.triage.bisect.stretches import find_stretch

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Mapping, Sequence

    from conformance.search.answers import SearchStep
    from conformance.search.axes import SearchPoints
    from conformance.search.bisection import ChangePoint, States
    from conformance.search.point_predicates import PointPredicate
    from conformance.search.predicates import PointState
    from conformance.search.trials import CellTrials
    from conformance.triage.bisect.endpoints import EndpointSearch
    from conformance.triage.bisect.stretches import MeasuredStretch

    Flaky = dict[int, Counter[PointState]]

UNLIKELY: Final = 0.01
"""Acceptable probability of a false good point."""
MOST: Final = 40
"""Maximum runs of a point; a failure in fewer than one run of nine would need more."""
SLOW: Final = 5.0
"""Seconds of a trial from which points are tried in advance, to save rounds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resampling:
    """Runs of the last good point, and their probability by chance.

    Attributes:
        runs: Number of runs of the point, all of them good.
        rate: Share of bad runs of the first bad point.
    """

    runs: int
    rate: float

    @property
    def chance(self) -> float:
        """Probability that a point with that rate of failures is good in all runs."""
        return (1 - self.rate) ** self.runs

    @property
    def is_enough(self) -> bool:
        """Whether a false good point is unlikely."""
        return self.chance <= UNLIKELY


def compute_runs(rate: float) -> int:
    """Return the number of good runs that make a false good point unlikely, at most `MOST`.

    Args:
        rate: Share of bad runs of a bad point, above 0.
    """
    if rate >= 1:
        return 1
    return min(math.ceil(math.log(UNLIKELY) / math.log1p(-rate)), MOST)


def find_last_good(states: States, change: ChangePoint, *, reverse: bool) -> int:
    """Return the good point nearest to a change, on the side of the good end.

    Args:
        states: State of each point that was tried.
        change: The change.
        reverse: Whether the good end is the last point.
    """
    good = [number for number, state in states.items() if state.kind is PointKind.GOOD]
    if reverse:
        return min(number for number in good if number >= change.after)
    return max(number for number in good if number <= change.before)


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineEntry:
    """Neighbouring points in one state.

    Attributes:
        first: Number of the first point.
        last: Number of the last point.
        state: State of the points.
        summary: State in words, of the first tried point.
        tried: Number of tried points; the others are between two points in the same state.
    """

    first: int
    last: int
    state: PointState
    summary: str
    tried: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BisectAnswer(SearchAnswer[int]):
    """The answer of a bisection.

    Attributes:
        predicate: The predicate.
        points: The points, in order.
        labels: Names of the points.
        reverse: Whether the good end is the newer end.
        states: State of each point that was tried.
        changes: All changes, in order.
        also: Changes by which the ends differ, if a point in between is worse.
        stretch: Points that are far from the good end, if others are further.
        main: The change to the state of the bad end that is nearest to the good end.
        resampled: Runs of the last good point, if the first bad point is flaky.
        versions: Versions of all packages before and after the main change.
        swapped: Whether the ends changed sides, because the end called good fails.
    """

    predicate: PointPredicate
    points: SearchPoints
    labels: Sequence[str]
    reverse: bool
    states: States
    changes: Sequence[ChangePoint]
    also: Sequence[ChangePoint]
    main: ChangePoint
    versions: tuple[Mapping[str, str], Mapping[str, str]]
    resampled: Resampling | None = None
    swapped: bool = False
    stretch: MeasuredStretch | None = None

    @property
    def good_end(self) -> int:
        """Number of the good end."""
        return len(self.points) - 1 if self.reverse else 0

    @property
    def last_good(self) -> int:
        """The good point nearest to the change: before it, or after it in a search for a fix."""
        return find_last_good(self.states, self.main, reverse=self.reverse)

    @property
    def first_bad(self) -> int:
        """The bad point at the change."""
        return self.main.before if self.reverse else self.main.after

    @property
    def others(self) -> list[int]:
        """Points between the last good and the first bad point that are neither."""
        first, last = sorted((self.last_good, self.first_bad))
        within = range(first + 1, last)
        return [n for n in within if n in self.states and self.states[n].kind is PointKind.OTHER]

    def fails(self, point: int) -> bool:
        """Say whether the target failed at a point."""
        return self._find_first_step(point).samples[0].outcome is not Outcome.OK

    def get_summary(self, point: int) -> str:
        """Return the result of the first trials of a point, in words."""
        return self._find_first_step(point).summary

    def _find_first_step(self, point: int) -> SearchStep[int]:
        return next(step for step in self.steps if step.point == point and not step.again)

    @property
    def is_confirmed(self) -> bool:
        """Whether the last good and the first bad point are neighbours with reproducible states."""
        if self.others:
            return False
        return not self.flaky or (self.resampled is not None and self.resampled.is_enough)

    @property
    def works_nowhere(self) -> bool:
        """Whether the target failed at each point that was tried."""
        tried = (record for step in self.steps for record in step.samples)
        return all(record.outcome is not Outcome.OK for record in tried)

    @property
    def timeline(self) -> list[TimelineEntry]:
        """Stretches of points in one state, in order."""
        # Points that cannot be tried are one stretch, for any reasons.
        known = {n: state if state.is_known else None for n, state in self.states.items()}
        stretches = (list(run) for _, run in groupby(sorted(known), known.__getitem__))
        return [
            TimelineEntry(
                first=run[0], last=run[-1], state=self.states[run[-1]],
                summary=self.get_summary(run[0]), tried=len(run),
            )
            for run in stretches
        ]  # fmt: skip


@dataclass(slots=True, kw_only=True)
class Bisection:
    """A bisection.

    Attributes:
        points: The cells along the axis, in order.
        trials: The trials of the points, by number.
        endpoints: Search for the endpoints, and for the predicate that separates them.
        width: Trials at the same time.
    """

    points: SearchPoints
    trials: CellTrials[int]
    endpoints: EndpointSearch
    width: int = 1
    _also: list[ChangePoint] = field(default_factory=list)

    def run(self) -> BisectAnswer:
        """Search for every change.

        Raises:
            EndpointsError: If no predicate separates the endpoints, or an end cannot be compared.
            UsageError: If the fact does not exist.
            InfrastructureError: If an end cannot be tried now, or the disk refuses.
        """
        trials, predicate = self.trials, self._find_predicate()
        main: ChangePoint | None = None
        flaky: Flaky = {}
        # A point that turns out to be bad when it is tried again moves the change.
        while (found := self._search(predicate)) != main:
            main, flaky = found, self._confirm(predicate, found)
        resampled = None
        if isinstance(predicate, RepeatedPredicate) and flaky:
            resampled = self._resample(predicate, flaky)
        main = self._find_main_change()
        before, after = (self.points[number] for number in (main.before, main.after))
        return BisectAnswer(
            points=self.points, labels=self.points.labels, reverse=self.endpoints.reverse,
            predicate=predicate, steps=trials.steps, states=trials.states,
            changes=find_change_points(trials.states), also=self._also, main=main, flaky=flaky,
            resampled=resampled, swapped=self.endpoints.swapped,
            stretch=(
                find_stretch(predicate, self.endpoints.scanned)
                if isinstance(predicate, MetricPredicate) else None
            ),
            versions=(trials.prober.get_versions(before), trials.prober.get_versions(after)),
        )  # fmt: skip

    def _find_predicate(self) -> PointPredicate:
        """Return the predicate, with all points that were tried for it decided."""
        trials = self.trials
        if trials.metric is not None:
            measured, points = self.endpoints.measure(trials.metric)
            # Not all of a scan: what lies between points that are alike is not looked at again.
            trials.decide(measured, points)
            return measured
        predicate = self.endpoints.find_predicate()
        # All samples: a scan for the predicate may have tried more points than the ends.
        trials.decide(predicate, sorted(trials.samples))
        return self._replace_by_worse(predicate)

    def _replace_by_worse(self, predicate: RepeatedPredicate) -> RepeatedPredicate:
        """Return the predicate of a failure between the ends, if the ends themselves succeed.

        An error in between matters more than different outputs at both ends.
        """
        first = self._search(predicate)
        reverse, trials = self.endpoints.reverse, self.trials
        good = find_last_good(trials.states, first, reverse=reverse)
        if self._has_named_predicate or trials.get_record(good).outcome is not Outcome.OK:
            return predicate
        # Only after the search: a point that fails between the ends is known only then.
        worse = self.endpoints.find_worse(good, first.before if reverse else first.after)
        if worse is None:
            return predicate
        self._also.append(first)
        trials.announced.update(trials.samples)  # they were reported
        trials.states.clear()
        trials.decide(worse, sorted(trials.samples))
        return worse

    @property
    def _has_named_predicate(self) -> bool:
        """Whether the options name the predicate."""
        return any(self.endpoints.options)

    def _search(self, predicate: PointPredicate) -> ChangePoint:
        """Try points until every change is between neighbours; return the main change."""
        slow = max(
            side.record.seconds.get("job", 0.0)
            for samples in self.trials.samples.values()
            for side in samples
        )
        while points := choose_untried_points(self.trials.states, self.width, eager=slow >= SLOW):
            self.trials.decide(predicate, points)
        return self._find_main_change()

    def _find_main_change(self) -> ChangePoint:
        """Return the change from good to bad that is nearest to the good end."""
        states, reverse = self.trials.states, self.endpoints.reverse
        good = [n for n, state in states.items() if state.kind is PointKind.GOOD]
        changes = find_change_points(states)
        found = [
            number
            for number, change in enumerate(changes)
            if states[change.before if reverse else change.after].kind is PointKind.BAD
            and any(n >= change.after if reverse else n <= change.before for n in good)
        ]
        main = found[-1] if reverse else found[0]
        # In a search for a fix, failures of any kind before it are the state to leave.
        if reverse or self._has_named_predicate or not self.trials.fails(changes[main].after):
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
        """Try both sides of the change once more; return the points that are sometimes good.

        A point that is bad each time, in any way, is bad.
        """
        flaky = self.trials.confirm(predicate, main.before, main.after)
        sometimes_good = {}
        for point, seen in flaky.items():
            if any(state.kind is PointKind.GOOD for state in seen):
                sometimes_good[point] = seen
            else:
                self._note_bad(point, seen)
        return sometimes_good

    def _note_bad(self, point: int, seen: Counter[PointState]) -> None:
        """Record a point as bad if any of its trials was bad."""
        bad = [state for state in seen if state.kind is PointKind.BAD]
        if bad:
            self.trials.states[point] = bad[-1]

    def _resample(self, predicate: RepeatedPredicate, flaky: Flaky) -> Resampling | None:
        """Try the last good point until it is unlikely to be good by chance.

        Each point that turns out to be bad moves the search towards the good end.

        Raises:
            EndpointsError: If the good end itself is bad at times.
        """
        rates = [
            sum(count for state, count in seen.items() if state.kind is PointKind.BAD)
            / seen.total()
            for seen in flaky.values()
        ]
        # The lowest rate needs the most runs, so these are enough for both sides of the change.
        rate = min(filter(None, rates), default=0.0)
        if not rate:
            return None
        often = RepeatedPredicate(predicate.predicate, max(compute_runs(rate), predicate.repeat))
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
                return Resampling(runs=len(samples[good]), rate=rate)
        raise EndpointsError(
            f"{self.points.labels[end]} is bad, too, at times: {often.summarize(samples[end])}; "
            "name another good end"
        )
