"""The endpoints of a bisection: two points of an axis that a predicate separates.

The ends of an axis are the endpoints if a predicate separates them. Otherwise others are sought: a
report may name a point, the good end may lack an interface, or only points in between are bad.
"""

from __future__ import annotations

import re
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING, Final

from conformance.model.outcome import Conformance, Outcome
from conformance.search.endpoints import (
    ANY_PREDICATE,
    AlikeError,
    DifferentFailuresError,
    EndpointsError,
    PredicateOptions,
    choose_predicate,
)
from conformance.search.equivalence import (
    SILENT,
    find_unstable_lines,
    format_ending,
    is_same_failure,
    shorten,
)
from conformance.search.point_predicates import (
    OverlapError,
    RepeatedPredicate,
    find_largest_distance,
    find_own_metrics,
)
from conformance.search.predicates import OutputPredicate
from conformance.wording import plural

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from conformance.engine.runs.stored_job import StoredJob
    from conformance.search.metrics import Metric
    from conformance.search.point_predicates import MetricPredicate
    from conformance.search.predicates import Endpoints
    from conformance.search.trials import CellTrials

    Samples = Mapping[int, Sequence[StoredJob]]

ENDING: Final = PredicateOptions(when="ending")
MOST_SCANNED: Final = 64
"""Maximum length of an axis that is scanned without a request: all releases, but not a year of
nightlies."""
_LACKS: Final = re.compile(
    r"^AttributeError: module '[\w.]+' has no attribute|^ImportError: cannot import name"
    r"|^ModuleNotFoundError: "
)
"""Endings of a program that uses an interface which the release lacks."""
_SAME, _DIFFERS, _DEVIATES = 0, 1, 2
_SEVERITY: Final = {
    Outcome.RAISED: 3,
    Outcome.OUT_OF_MEMORY: 4,
    Outcome.TIMED_OUT: 5,
    Outcome.CRASHED: 6,
}


@dataclass(slots=True, kw_only=True)
class EndpointSearch:
    """The search for endpoints.

    Attributes:
        trials: The trials of the bisection.
        last: Number of the last point.
        reverse: Whether the good endpoint has the higher number.
        options: The options that name the predicate.
        scan: Whether all points are tried if the ends alone show no difference.
        every: Whether all points are tried in any case.
        repeat: Number of good samples that make a point good.
        seen_on: Number of the point that a report names, if any.
        scanned: Samples of all points from another search, which a search for a metric scans.
        swapped: Whether the endpoints changed sides, because the end called good fails.
    """

    trials: CellTrials[int]
    last: int
    reverse: bool = False
    options: PredicateOptions = ANY_PREDICATE
    scan: bool = False
    every: bool = False
    repeat: int = 1
    seen_on: int | None = None
    scanned: Samples = field(default_factory=dict)
    swapped: bool = False
    _unstable: frozenset[int] = field(default=frozenset())

    @property
    def ends(self) -> tuple[int, int]:
        """Numbers of the good and the bad end of the axis."""
        return (self.last, 0) if self.reverse else (0, self.last)

    def find_predicate(self) -> RepeatedPredicate:
        """Try both ends, or all points, and return the predicate that separates good from bad.

        Raises:
            EndpointsError: If no predicate does, or an end cannot be compared.
            UsageError: If the fact does not exist.
            InfrastructureError: If an end cannot be tried now.
        """
        self.trials.try_endpoints(*self.ends)
        good, bad = self._find_installable_ends()
        # A report names the point where its author saw the behaviour: a better end than the newest.
        if (reported := self._choose_by_report(good, bad)) is not None:
            return reported
        if self._is_fix(good, bad):
            if (missing := self._choose_by_interface(good, bad)) is not None:
                return missing
            self._swap()
            good, bad = bad, good
        try:
            predicate = self._choose(good, bad)
        except (AlikeError, DifferentFailuresError) as error:
            if not (self.every or (self.scan and self._is_short)):
                raise
            self._try_all()
            if self._never_works(bad) and isinstance(error, DifferentFailuresError):
                return self._choose_by_ending(good, bad)
            return self._choose(*self._find_ends_within(good, bad, error))
        if self.every:
            self._try_all()
            return self.find_worse(good, bad) or predicate
        return predicate

    def measure(self, metric: Metric) -> tuple[MetricPredicate, list[int]]:
        """Measure both ends, or the good end and the furthest point of a scan.

        Returns:
            The predicate that separates the two, and the points to decide by it.

        Raises:
            EndpointsError: If no point differs from the good end, or an end lacks the metric.
            InfrastructureError: If an end cannot be tried now.
        """
        good, bad = self.ends
        if not self.every:
            try:
                return self.trials.measure_endpoints(metric, good, bad), sorted((good, bad))
            except OverlapError:
                if not (self.scan and self._is_short):
                    raise
        self.trials.try_endpoints(good)
        if not self.scanned:
            # One sample shows which point is far from all others; more decide about it.
            self._try_all(often=1)
            self.scanned = {point: samples[:1] for point, samples in self.trials.samples.items()}
        furthest = self._find_furthest(metric, good)
        try:
            measured = self.trials.measure_endpoints(metric, good, furthest)
        except OverlapError as error:
            raise OverlapError(f"{error}; no other point is further from it") from None
        if self.every and measured.bad < measured.good:
            self._swap()
            measured = replace(measured, good=measured.bad, bad=measured.good)
        return measured, sorted({good, bad, furthest, *self._find_borders(measured)})

    def _find_borders(self, measured: MetricPredicate) -> set[int]:
        """Return the neighbours in a scan whose samples are on different sides."""
        sides = {
            point: measured.is_good(median(values))
            for point, samples in sorted(self.scanned.items())
            if (values := measured.metric.collect_values(samples))
        }
        return {n for pair in pairwise(sides) if sides[pair[0]] is not sides[pair[1]] for n in pair}

    def _find_furthest(self, metric: Metric, good: int) -> int:
        """Return the point whose measurements are furthest from those of a good point."""
        scanned = self.scanned

        def measure(point: int) -> float:
            own = find_own_metrics(metric, self.trials.samples[good], scanned[point])
            return find_largest_distance(own or [metric], scanned[good], scanned[point])[1]

        works = (n for n in scanned if scanned[n][0].record.outcome is Outcome.OK and n != good)
        return max(works, key=measure, default=self.ends[1])

    def find_worse(self, good: int, bad: int) -> RepeatedPredicate | None:
        """Return the predicate of the worst point, None if it is no worse than the bad point."""
        worst = self._find_worst(good)
        # Equal severity keeps the bad end, which the user named.
        if worst is None or self._rank_severity(worst, good) <= self._rank_severity(bad, good):
            return None
        return self._choose(good, worst)

    def _find_installable_ends(self) -> tuple[int, int]:
        """Return the outermost points that have an environment."""
        good, bad = self.ends
        if self.scan:
            if self._is_refused(good) and not self._is_refused(bad):
                good = self._find_nearest(bad, good, self._is_refused)
            elif self._is_refused(bad) and not self._is_refused(good):
                bad = self._find_nearest(good, bad, self._is_refused)
        # With a single installable point there is no search: the error about the ends says why.
        return self.ends if good == bad else (good, bad)

    def _is_refused(self, point: int) -> bool:
        """Say whether the requirements cannot be installed together at a point."""
        record = self.trials.get_record(point)
        error = record.error.type if record.error else ""
        return record.outcome is Outcome.UNSUPPORTED and error == str(Outcome.UNSUPPORTED)

    def _find_nearest(self, known: int, far: int, is_refused: Callable[[int], bool]) -> int:
        """Return the point nearest to `far` that is not refused, by bisection from `known`."""
        while abs(known - far) > 1:
            middle = (known + far) // 2
            if middle not in self.trials.samples:
                self.trials.try_points([middle])
            if is_refused(middle):
                far = middle
            else:
                known = middle
        return known

    def _choose_by_report(self, good: int, bad: int) -> RepeatedPredicate | None:
        """Return the predicate of the point that a report names, None if there is no difference.

        The bad end may behave differently, and the good end may do the same already: then the
        reported behaviour was fixed.
        """
        seen = self.seen_on
        if seen is None:
            return None
        if seen not in self.trials.samples:
            self.trials.try_points([seen])
        if self.trials.get_record(good).outcome is not Outcome.OK:
            return self._choose_by_reported_failure(seen, bad)
        with suppress(EndpointsError):
            try:
                return self._choose(good, seen)
            except AlikeError:
                if not (any(self.options) or self.trials.fails(bad)):
                    predicate = self._choose(bad, seen)
                    self._swap()
                    return predicate
        return None

    def _choose_by_reported_failure(self, seen: int, bad: int) -> RepeatedPredicate | None:
        """Return the predicate of a reported failure, if the good end fails, too.

        Returns:
            None if the bad end fails in the same way and is searched instead, or nothing works.
        """
        endings = (format_ending(self.trials.get_record(point)) for point in (seen, bad))
        may_scan = self.scan and self._is_short
        if not (self.trials.fails(seen) and may_scan) or is_same_failure(*endings):
            return None
        self._try_all()
        if not (works := self._find_working()):
            return None
        before = [n for n in works if (n < seen) is not self.reverse]
        # The target works only after the reported point: the question is when it was fixed.
        if not before:
            self._swap()
        return self._choose_by_ending(min(before or works, key=lambda n: abs(n - seen)), seen)

    def _choose_by_interface(self, good: int, bad: int) -> RepeatedPredicate | None:
        """Return the predicate from the first point with an interface that the good end lacks.

        A missing interface is no evidence of the behaviour at the bad end. If that first point and
        the bad end behave in the same way, all points are tried.

        Returns:
            None if the good end fails for another reason, or all points with the interface agree.
        """

        def lacks(point: int) -> bool:
            return _LACKS.search(format_ending(self.trials.get_record(point))) is not None

        if not (self.scan and lacks(good)):
            return None
        first = self._find_nearest(bad, good, lacks)
        # A point that has the interface and fails is no evidence of good behaviour.
        if first == bad or self.trials.get_record(first).outcome is not Outcome.OK:
            return None
        try:
            return self._choose(first, bad)
        except AlikeError as error:
            if not self._is_short:
                return None
            self._try_all()
            with suppress(AlikeError):
                return self._choose(*self._find_ends_within(first, bad, error))
        return None

    def _is_fix(self, good: int, bad: int) -> bool:
        """Say whether the end called good fails and the end called bad succeeds."""
        before, after = self.trials.get_record(good), self.trials.get_record(bad)
        if before.outcome in SILENT or after.outcome is not Outcome.OK:
            return False
        conformance = before.conformance, after.conformance
        return before.outcome is not Outcome.OK or conformance == (
            Conformance.DEVIATES, Conformance.CONFORMS,
        )  # fmt: skip

    def _swap(self) -> None:
        self.reverse, self.swapped = not self.reverse, True

    def _choose(self, good: int, bad: int) -> RepeatedPredicate:
        """Return the predicate that separates two points."""
        # The failure that was fixed may have been another one long before.
        is_fixed = self.swapped and self.trials.get_record(bad).outcome is not Outcome.OK
        options = self.options._replace(when=self.options.when or ("exit" if is_fixed else ""))
        predicate = choose_predicate(self._make_endpoints(good, bad), options)
        if isinstance(predicate, OutputPredicate):
            # Lines that a cell prints differently from run to run are no evidence.
            for point in (good, bad):
                if len(self.trials.samples[point]) == 1:
                    self.trials.try_points([point])
                texts = map(predicate.read_text, self.trials.samples[point][:2])
                self._unstable |= find_unstable_lines(*texts)
            predicate = choose_predicate(self._make_endpoints(good, bad), self.options)
        return RepeatedPredicate(predicate, self.repeat)

    def _choose_by_ending(self, good: int, bad: int) -> RepeatedPredicate:
        return RepeatedPredicate(
            choose_predicate(self._make_endpoints(good, bad), ENDING), self.repeat
        )

    def _make_endpoints(self, good: int, bad: int) -> Endpoints:
        return self.trials.make_endpoints(good, bad, self._unstable)

    @property
    def _is_short(self) -> bool:
        """Whether all points may be tried without a request."""
        return self.last < MOST_SCANNED

    def _try_all(self, often: int | None = None) -> None:
        """Scan the axis: try every point that was not tried."""
        untried = [n for n in range(self.last + 1) if n not in self.trials.samples]
        self.trials.announced.update(untried)
        self.trials.try_points(untried, often=often)

    def _find_working(self) -> list[int]:
        """Return the points at which the target works."""
        return [n for n in self.trials.samples if self.trials.get_record(n).outcome is Outcome.OK]

    def _never_works(self, bad: int) -> bool:
        return self.trials.get_record(bad).outcome is not Outcome.OK and not self._find_working()

    def _find_ends_within(self, good: int, bad: int, error: EndpointsError) -> tuple[int, int]:
        """Return a good and a bad point of a scan, if both ends are alike or both fail.

        Raises:
            EndpointsError: If all points are alike, or the target works nowhere.
        """
        if self.trials.get_record(bad).outcome is not Outcome.OK:
            # The working point nearest to the bad end bounds the change best.
            if works := self._find_working():
                return min(works, key=lambda n: abs(n - bad)), bad
        elif (worst := self._find_worst(good)) is not None:
            return good, worst
        points = sorted(self.trials.samples)
        counts = Counter(shorten(format_ending(self.trials.get_record(n))) for n in points)
        endings = "; ".join(f"{text} ({count})" for text, count in counts.items())
        count = plural(self.last + 1, "point")
        raise type(error)(f"{error}; all {count} were tried, and none differs more: {endings}")

    def _find_worst(self, good: int) -> int | None:
        """Return the worst point, the nearest to the good point if several are; None if all agree.

        Points beyond the good point are ignored: they may lack an interface.
        """
        beyond = range(good + 1, self.last + 1) if self.reverse else range(good)
        ranks = {n: self._rank_severity(n, good) for n in self.trials.samples if n not in beyond}
        top = max(ranks.values())
        if top == _SAME:
            return None
        return min((n for n in ranks if ranks[n] == top), key=lambda n: abs(n - good))

    def _rank_severity(self, point: int, good: int) -> int:
        """Return the severity of a point: a crash is worse than an error, an error than a value."""
        record, before = self.trials.get_record(point), self.trials.get_record(good)
        if record.outcome in SILENT or not self._differs(good, point):
            return _SAME
        if record.outcome is before.outcome is Outcome.OK:
            deviates = record.conformance is Conformance.DEVIATES
            worsened = deviates and before.conformance is not record.conformance
            return _DEVIATES if worsened else _DIFFERS
        return _SEVERITY.get(record.outcome, _DIFFERS)

    def _differs(self, good: int, point: int) -> bool:
        try:
            choose_predicate(self._make_endpoints(good, point), self.options)
        except DifferentFailuresError:
            return True
        except EndpointsError:
            return False
        return True
