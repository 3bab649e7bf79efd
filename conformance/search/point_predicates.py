"""Predicates on all samples of a point: the worst repeated sample, or a measured number. Pure.

A single measurement on a shared machine is unreliable. Each endpoint is measured until
nearly all of its samples are on its own side of the threshold between both; then a point is
measured until its samples on one side outnumber those on the other by a margin, which is Wald's
sequential probability ratio test for the side of a sample. Medians and counts of sides are robust
against a single slow sample.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, sqrt
from statistics import median
from typing import TYPE_CHECKING, Final, Protocol

from conformance.model.outcome import Conformance, Outcome
from conformance.search.endpoints import EndpointsError
from conformance.search.equivalence import SILENT, format_ending, shorten
from conformance.search.metrics import TIME
from conformance.search.predicates import (
    BAD,
    GOOD,
    PointKind,
    PointState,
    classify_sample,
    describe_detail,
    make_other_state,
)
from conformance.search.printed_times import find_printed_times

if TYPE_CHECKING:
    from collections.abc import Sequence

    from conformance.engine.runs.stored_job import StoredJob
    from conformance.model.record import Record
    from conformance.search.metrics import Metric
    from conformance.search.predicates import Predicate

FIRST: Final = 6
"""Samples of each endpoint before they are compared."""
MOST: Final = 15
"""Samples of one point; a point that is undecided then is ambiguous."""
MARGIN: Final = 3
"""Surplus of samples on one side that decides: odds of 64 to 1 if four of five samples are right.
As many more samples of an endpoint outweigh one sample on the wrong side."""


class OverlapError(EndpointsError):
    """Endpoints that a metric does not separate."""


class PointPredicate(Protocol):
    """A predicate that decides on all samples of a point, and may ask for more samples."""

    @property
    def name(self) -> str:
        """Name of the predicate for `--when`."""
        ...

    @property
    def about(self) -> str:
        """The behaviour of a bad point, in a few words."""
        ...

    def classify(self, samples: Sequence[StoredJob]) -> PointState | None:
        """Return the state of a point, None if it needs another sample."""
        ...

    def summarize(self, samples: Sequence[StoredJob]) -> str:
        """Return the result of the samples, in a few words."""
        ...


@dataclass(frozen=True, slots=True)
class RepeatedPredicate:
    """A predicate on each sample; a point that is bad once is bad.

    Attributes:
        predicate: Predicate on a sample.
        repeat: Number of good samples that make a point good.
        inverted: Whether good and bad are exchanged.
    """

    predicate: Predicate
    repeat: int = 1
    inverted: bool = False

    @property
    def name(self) -> str:
        """Name of the predicate for `--when`."""
        return self.predicate.name

    @property
    def about(self) -> str:
        """The behaviour of a bad point, in a few words."""
        return self.predicate.about

    def classify(self, samples: Sequence[StoredJob]) -> PointState | None:
        """Return the worst state of all samples; None while they are good, but too few."""
        states = [classify_sample(self.predicate, side) for side in samples]
        worst = states[_find_worst(states)]
        # One bad sample decides. A sample that is not bad may be luck at a flaky point.
        needs_more = worst.kind in (PointKind.GOOD, PointKind.OTHER) and len(samples) < self.repeat
        if needs_more:
            return None
        kind = _OPPOSITE.get(worst.kind, worst.kind) if self.inverted else worst.kind
        return PointState(kind, worst.about)

    def summarize(self, samples: Sequence[StoredJob]) -> str:
        """Return the outcome and the conformance of the worst sample."""
        states = [classify_sample(self.predicate, side) for side in samples]
        worst = _find_worst(states)
        side = samples[worst]
        record = side.record
        if record.outcome in SILENT:
            return " ".join(format_ending(record).split())  # unshortened: it may end with advice
        text = shorten(format_ending(record))
        if record.outcome is Outcome.OK:
            judged = record.conformance is not Conformance.UNKNOWN
            parts = (
                "ok",
                record.conformance if judged else "",
                describe_detail(self.predicate, side),
            )
            text = ", ".join(filter(None, parts))
        elif record.outcome is Outcome.TIMED_OUT and record.error is not None:
            text = f"{text}; at {record.error.where}" if record.error.where else text
        alike = sum(state.kind is states[worst].kind for state in states)
        often = alike < len(states) or self.repeat > 1
        return f"{text} ({alike} of {len(states)} runs)" if often else text


_OPPOSITE: Final = {PointKind.GOOD: PointKind.BAD, PointKind.BAD: PointKind.GOOD}
_ORDER: Final = (PointKind.BAD, PointKind.OTHER, PointKind.GOOD, PointKind.UNKNOWN)
"""Kinds of states, the decisive kind first."""


def _find_worst(states: Sequence[PointState]) -> int:
    """Return the number of the decisive state: the first of the worst kind."""
    return min(range(len(states)), key=lambda n: _ORDER.index(states[n].kind))


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricPredicate:
    """Decides by the side of the threshold between the endpoints' medians.

    Attributes:
        metric: The metric.
        good: Median of the good endpoint.
        bad: Median of the bad endpoint.
    """

    metric: Metric
    good: float
    bad: float

    @property
    def name(self) -> str:
        """Name of the predicate for `--when`."""
        return self.metric.name

    @property
    def about(self) -> str:
        """The threshold."""
        how = "above" if self.good < self.bad else "below"
        good, bad, limit = map(self.metric.render, (self.good, self.bad, self.threshold))
        return f"has {self.metric.name} {how} {limit}, between medians of {good} and {bad}"

    @property
    def threshold(self) -> float:
        """The geometric mean of both medians.

        The arithmetic mean for numbers that may be 0 or negative, such as a printed metric.
        """
        if min(self.good, self.bad) <= 0:
            return (self.good + self.bad) / 2
        # Times and sizes vary by a factor, so the threshold is in the middle on a logarithmic
        # scale.
        return sqrt(self.good * self.bad)

    def is_good(self, sample: float) -> bool:
        """Say whether a sample is on the side of the good endpoint."""
        return (sample < self.threshold) == (self.good < self.bad)

    def classify(self, samples: Sequence[StoredJob]) -> PointState | None:
        """Return the state of a point; None if it needs more samples."""
        records = [side.record for side in samples]
        if (failed := _find_failure(records)) is not None:
            silent = failed.outcome in SILENT
            return (
                PointState(PointKind.UNKNOWN, format_ending(failed))
                if silent
                else make_other_state(failed)
            )
        values = self.metric.collect_values(samples)
        bad = sum(not self.is_good(value) for value in values)
        # The surplus of samples on one side: bad minus good.
        margin = 2 * bad - len(values)
        if abs(margin) >= MARGIN:
            return BAD if margin > 0 else GOOD
        # A point near the threshold would be measured for ever.
        if len(records) < MOST:
            return None
        return PointState(PointKind.UNKNOWN, f"ambiguous: {bad} of {len(values)} samples are bad")

    def summarize(self, samples: Sequence[StoredJob]) -> str:
        """Return the measurement, in a few words."""
        records = [side.record for side in samples]
        failed = _find_failure(records)
        return self.metric.summarize(samples) if failed is None else shorten(format_ending(failed))


def separate_ends(
    metric: Metric, good: Sequence[float], bad: Sequence[float]
) -> MetricPredicate | None:
    """Return the predicate that separates the samples of two endpoints, None if they overlap.

    Args:
        metric: The metric.
        good: Samples of the good endpoint.
        bad: Samples of the bad endpoint.
    """
    found = MetricPredicate(metric=metric, good=median(good), bad=median(bad))
    # Medians that differ by noise would give a threshold within the noise.
    resolution = max(metric.resolution, metric.margin * abs(found.good))
    if abs(found.good - found.bad) <= resolution:
        return None
    wrong_side = sum(not found.is_good(x) for x in good), sum(found.is_good(x) for x in bad)
    enough = all(
        count <= (len(samples) - FIRST) // MARGIN
        for count, samples in zip(wrong_side, (good, bad), strict=True)
    )
    return found if enough else None


def find_own_metrics(metric: Metric, *points: Sequence[StoredJob]) -> list[Metric]:
    """Return the metrics that a program measures by itself, empty if the metric is not its time.

    Args:
        metric: The metric.
        points: The samples of each point.
    """
    is_marked = any("regions" in side.record.seconds for samples in points for side in samples)
    return find_printed_times(*points) if metric is TIME and not is_marked else []


def find_largest_distance(
    metrics: Sequence[Metric], good: Sequence[StoredJob], other: Sequence[StoredJob]
) -> tuple[Metric, float]:
    """Return the metric by which a point is furthest from the good endpoint, and how far.

    Args:
        metrics: The metrics, at least one.
        good: Samples of the good endpoint.
        other: Samples of the point. In a metric that one of both lacks, it is not far.
    """

    def measure(metric: Metric) -> float:
        both = [metric.collect_values(samples) for samples in (good, other)]
        return measure_distance(*map(median, both)) if all(both) else 1.0

    furthest = max(metrics, key=measure)
    return furthest, measure(furthest)


def measure_distance(value: float, other: float) -> float:
    """Return the ratio of two measurements, at least 1; infinity if one of them is not positive."""
    low, high = sorted((value, other))
    return 1.0 if low == high else high / low if low > 0 else inf


def _find_failure(records: Sequence[Record]) -> Record | None:
    return next((record for record in records if record.outcome is not Outcome.OK), None)


def compare_endpoints(
    metric: Metric, good: Sequence[StoredJob], bad: Sequence[StoredJob], names: tuple[str, str]
) -> MetricPredicate | None:
    """Return the predicate that separates two endpoints, None if they need more samples.

    Args:
        metric: The metric. A program that prints times is compared by the one that differs most.
        good: Samples of the good endpoint.
        bad: Samples of the bad endpoint.
        names: Names of the endpoints in messages.

    Raises:
        OverlapError: If they overlap after the maximum of samples.
        EndpointsError: If an endpoint fails, or lacks the metric.
    """
    ends = (good, bad)
    for samples, name in zip(ends, names, strict=True):
        if (failed := _find_failure([side.record for side in samples])) is not None:
            raise EndpointsError(
                f"{name}: no {metric.name} to measure: {shorten(format_ending(failed))}"
            )
        if not metric.collect_values(samples):
            raise EndpointsError(f"{name}: has no {metric.name}; {metric.needs}")
    # Fewer samples may be separated by chance.
    if min(map(len, ends)) < FIRST:
        return None
    metrics = find_own_metrics(metric, *ends) or [metric]
    separated = [
        predicate
        for one in metrics
        if (predicate := separate_ends(one, *map(one.collect_values, ends))) is not None
    ]
    if separated:
        return max(separated, key=lambda one: measure_distance(one.good, one.bad))
    if min(map(len, ends)) < MOST:
        return None
    metric, _ = find_largest_distance(metrics, *ends)
    summaries = " and ".join(
        f"{name} {metric.summarize(samples)}" for name, samples in zip(names, ends, strict=True)
    )
    raise OverlapError(f"{metric.name}: ambiguous, the ends overlap: {summaries}; name other ends")
