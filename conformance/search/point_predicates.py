"""Predicates on all samples of a point: the worst repeated sample, or a measured number. Pure.

A single measurement on a shared machine is unreliable. Each endpoint is measured until
nearly all of its samples are on its own side of the threshold between both; then a point is
measured until its samples on one side outnumber those on the other by a margin, which is Wald's
sequential probability ratio test for the side of a sample. Medians and counts of sides are robust
against a single slow sample.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from statistics import median
from typing import TYPE_CHECKING, Final, Protocol

from conformance.model.outcome import Conformance, Outcome
from conformance.search.endpoints import EndpointsError
from conformance.search.equivalence import SILENT, format_ending, shorten
from conformance.search.predicates import (
    BAD,
    GOOD,
    PointKind,
    PointState,
    classify_sample,
    describe_detail,
    make_other_state,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from conformance.engine.stored_job import StoredJob
    from conformance.model.record import Record
    from conformance.search.predicates import Predicate

FIRST: Final = 6
"""Samples of each endpoint before they are compared."""
MOST: Final = 15
"""Samples of one point; a point that is undecided then is ambiguous."""
MARGIN: Final = 3
"""Surplus of samples on one side that decides: odds of 64 to 1 if four of five samples are right.
As many more samples of an endpoint outweigh one sample on the wrong side."""
MIB: Final = 2**20
MILLISECOND: Final = 1e-3
SHORTEST: Final = 1e-5
"""Seconds below which a difference is noise of a clock of microseconds on a shared host."""


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
class Metric:
    """A number that is measured of a job.

    Attributes:
        name: Name of the metric.
        of: Function that returns the metric of a record, None if it was not measured.
        render: Function that formats the metric.
        resolution: Largest difference of equal medians.
    """

    name: str
    of: Callable[[Record], float | None]
    render: Callable[[float], str]
    resolution: float = 0.0

    def collect_values(self, records: Sequence[Record]) -> list[float]:
        """Return the metric of each record that has it."""
        return [value for record in records if (value := self.of(record)) is not None]

    def summarize(self, records: Sequence[Record]) -> str:
        """Return the median and the range of samples, at least one of which has the metric."""
        values = self.collect_values(records)
        low, mid, high = map(self.render, (min(values), median(values), max(values)))
        return f"median {mid} of {len(values)} ({low} to {high})"


def make_stage_metric(stage: str) -> Metric:
    """Return the seconds that a stage of a case takes, e.g. `compile`."""
    return _make_time_metric(f"time to {stage}", stage)


def make_region_metric(region: str) -> Metric:
    """Return the seconds that a region of a program takes at its fastest."""
    return _make_time_metric(f"time of region {region}", f"region {region}")


def _format_seconds(value: float) -> str:
    if value >= 1:
        return f"{value:.2f} s"
    return f"{value * 1e3:.3g} ms" if value >= MILLISECOND else f"{value * 1e6:.3g} µs"


def _make_time_metric(name: str, *keys: str) -> Metric:
    def of(record: Record) -> float | None:
        return next((record.seconds[key] for key in keys if key in record.seconds), None)

    return Metric(name=name, of=of, render=_format_seconds, resolution=SHORTEST)


TIME: Final = _make_time_metric("time", "regions", "own", "job")
"""Seconds of a job: the regions that a program times, otherwise all except its imports."""
PRINTED: Final = Metric(
    name="metric",
    of=lambda record: record.facts.get("metric"),
    render=lambda value: f"{value:g}",
)
"""A number that a program prints."""
MEMORY: Final = Metric(
    name="memory",
    # A job that was not measured has 0.
    of=lambda record: float(record.max_rss_bytes) or None,
    render=lambda bytes_: f"{bytes_ / MIB:,.0f} MiB",
)
"""Peak resident memory of a job's process, in bytes."""


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
        how = "more" if self.good < self.bad else "less"
        good, bad, limit = map(self.metric.render, (self.good, self.bad, self.threshold))
        return f"takes {how} {self.metric.name} than {limit}, between medians of {good} and {bad}"

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
        values = self.metric.collect_values(records)
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
        return self.metric.summarize(records) if failed is None else shorten(format_ending(failed))


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
    if abs(found.good - found.bad) <= metric.resolution:
        return None
    wrong_side = sum(not found.is_good(x) for x in good), sum(found.is_good(x) for x in bad)
    enough = all(
        count <= (len(samples) - FIRST) // MARGIN
        for count, samples in zip(wrong_side, (good, bad), strict=True)
    )
    return found if enough else None


def _find_failure(records: Sequence[Record]) -> Record | None:
    return next((record for record in records if record.outcome is not Outcome.OK), None)


def compare_endpoints(
    metric: Metric, good: Sequence[StoredJob], bad: Sequence[StoredJob], names: tuple[str, str]
) -> MetricPredicate | None:
    """Return the predicate that separates two endpoints, None if they need more samples.

    Args:
        metric: The metric.
        good: Samples of the good endpoint.
        bad: Samples of the bad endpoint.
        names: Names of the endpoints in messages.

    Raises:
        EndpointsError: If an endpoint fails, or they overlap after the maximum of samples.
    """
    ends = [[side.record for side in samples] for samples in (good, bad)]
    for records, name in zip(ends, names, strict=True):
        if (failed := _find_failure(records)) is not None:
            raise EndpointsError(
                f"{name}: no {metric.name} to measure: {shorten(format_ending(failed))}"
            )
        if not metric.collect_values(records):
            raise EndpointsError(
                f"{name}: has no {metric.name}; expected a --stage, --region or --metric of its own"
            )
    # Fewer samples may be separated by chance.
    if min(map(len, ends)) < FIRST:
        return None
    found = separate_ends(metric, *map(metric.collect_values, ends))
    if found is not None:
        return found
    if min(map(len, ends)) < MOST:
        return None
    summaries = " and ".join(
        f"{name} {metric.summarize(records)}" for name, records in zip(names, ends, strict=True)
    )
    raise EndpointsError(
        f"{metric.name}: ambiguous, the ends overlap: {summaries}; name other ends"
    )
