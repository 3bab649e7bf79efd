"""Points that differ from the good end in a measurement, but less than the bad ones. Pure."""

from __future__ import annotations

from itertools import groupby
from statistics import median
from typing import TYPE_CHECKING, Final, NamedTuple

from conformance.search.point_predicates import measure_distance

if TYPE_CHECKING:
    from conformance.search.point_predicates import MetricPredicate
    from conformance.triage.bisect.endpoints import Samples

FAR: Final = 3.0
"""Ratio to the good end from which a single sample of a scan is worth a line."""


class MeasuredStretch(NamedTuple):
    """Neighbouring points of a scan that are far from the good end, but not as far as bad points.

    Attributes:
        first: Number of the first point.
        last: Number of the last point.
        middle: Median of their samples.
    """

    first: int
    last: int
    middle: float


def find_stretch(predicate: MetricPredicate, scanned: Samples) -> MeasuredStretch | None:
    """Return the stretch of good samples that is furthest from the good end, `FAR` times or more.

    Args:
        predicate: The predicate.
        scanned: Samples of each point of the scan.
    """

    def is_far(number: int) -> bool:
        value = values[number]
        on_the_way = (value > predicate.good) == (predicate.bad > predicate.good)
        far = measure_distance(value, predicate.good) >= FAR
        return on_the_way and far and predicate.is_good(value)

    found = {n: predicate.metric.collect_values(samples) for n, samples in sorted(scanned.items())}
    values = {number: median(samples) for number, samples in found.items() if samples}
    runs = [
        MeasuredStretch(run[0], run[-1], median(values[n] for n in run))
        for run in (list(run) for far, run in groupby(values, is_far) if far)
    ]
    # The others may be noise, as each point has one sample.
    return max(runs, key=lambda run: measure_distance(run.middle, predicate.good), default=None)
