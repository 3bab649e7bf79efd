"""What is measured, not seen: whether a time or a memory figure is the one end's or the other's.

One sample says little on a machine that others use, too. Each end is measured until nearly all of
its samples are on its own side of the threshold between both; then a point is measured until its
samples on one side outnumber those on the other by a margin, which is Wald's sequential test for
the side that a sample falls on. Medians and counts of sides do not mind a single slow sample. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from statistics import median
from typing import TYPE_CHECKING, Final

from conformance.model.outcome import Outcome
from conformance.triage.questions.predicate import SILENT, EndsError, ending, other, quoted
from conformance.triage.questions.state import BAD, GOOD, Kind, State

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from conformance.engine.job_comparison import StoredJob
    from conformance.model.record import Record

FIRST: Final = 6
"""Samples of each end before they are compared."""
MOST: Final = 15
"""Samples of one point; what is not decided then is ambiguous."""
MARGIN: Final = 3
"""How many more samples on one side decide: 64 to 1 where four of five samples are right. As many
more samples of an end forgive one of it that is on the other's side."""
MIB: Final = 2**20
SHORTEST: Final = 1e-5
"""Seconds that a clock of microseconds, on a host that does other work, too, cannot tell apart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """Something that is measured of a job.

    Attributes:
        name: What it is called.
        of: Returns it of a record, None where it was not measured.
        told: Returns it in words.
        resolution: Medians that differ by no more than this are the same.
    """

    name: str
    of: Callable[[Record], float | None]
    told: Callable[[float], str]
    resolution: float = 0.0


def time_of(stage: str) -> Figure:
    """Return the figure of the seconds that a stage of a case takes, e.g. `compile`."""
    return _time(f"time to {stage}", stage)


def time_of_region(region: str) -> Figure:
    """Return the figure of the seconds that a region of a program takes at its fastest."""
    return _time(f"time of region {region}", f"region {region}")


def _seconds(value: float) -> str:
    if value >= 1:
        return f"{value:.2f} s"
    return f"{value * 1e3:.3g} ms" if value >= 1e-3 else f"{value * 1e6:.3g} µs"  # noqa: PLR2004


def _time(name: str, *keys: str) -> Figure:
    def of(record: Record) -> float | None:
        return next((record.seconds[key] for key in keys if key in record.seconds), None)

    return Figure(name=name, of=of, told=_seconds, resolution=SHORTEST)


TIME: Final = _time("time", "regions", "own", "job")
"""Seconds of a job: those of the regions that a program times, else all but its imports."""
METRIC: Final = Figure(
    name="metric",
    of=lambda record: record.facts.get("metric"),
    told=lambda value: f"{value:g}",
)
"""A number that a program prints."""
MEMORY: Final = Figure(
    name="memory",
    of=lambda record: float(record.max_rss_bytes) or None,
    told=lambda bytes_: f"{bytes_ / MIB:,.0f} MiB",
)
"""Peak resident memory of a job's process, in bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """What tells both ends apart.

    Attributes:
        good: Median of the good end.
        bad: Median of the bad one.
    """

    good: float
    bad: float

    @property
    def threshold(self) -> float:
        """The value that is as many times the one as the other is times it.

        Of numbers that need not be positive, such as a metric, the one in the middle.
        """
        if min(self.good, self.bad) <= 0:
            return (self.good + self.bad) / 2
        return sqrt(self.good * self.bad)

    def is_good(self, sample: float) -> bool:
        """Say on which side a sample is."""
        return (sample < self.threshold) == (self.good < self.bad)


def split(good: Sequence[float], bad: Sequence[float], resolution: float = 0.0) -> Split | None:
    """Return what tells two ends apart, None as long as they overlap.

    Args:
        good: Samples of the good end.
        bad: Samples of the bad one.
        resolution: Medians that differ by no more than this are the same.
    """
    found = Split(good=median(good), bad=median(bad))
    if abs(found.good - found.bad) <= resolution:
        return None
    astray = sum(not found.is_good(x) for x in good), sum(found.is_good(x) for x in bad)
    enough = all(
        count <= (len(samples) - FIRST) // MARGIN
        for count, samples in zip(astray, (good, bad), strict=True)
    )
    return found if enough else None


@dataclass(frozen=True, slots=True)
class ByFigure:
    """Takes what the bad end takes, not what the good end does.

    Attributes:
        figure: What is measured.
        split: What tells both ends apart.
    """

    figure: Figure
    split: Split

    @property
    def name(self) -> str:
        """What `--when` calls it."""
        return self.figure.name

    @property
    def about(self) -> str:
        """The threshold."""
        how = "more" if self.split.good < self.split.bad else "less"
        medians = self.split.good, self.split.bad
        good, bad, limit = map(self.figure.told, (*medians, self.split.threshold))
        return f"takes {how} {self.figure.name} than {limit}, between medians of {good} and {bad}"

    def state(self, samples: Sequence[StoredJob]) -> State | None:
        """Return what a point shows; None if more must be measured."""
        records = [side.record for side in samples]
        failed = next((record for record in records if record.outcome is not Outcome.OK), None)
        if failed is not None:
            silent = failed.outcome in SILENT
            return State(Kind.UNKNOWN, ending(failed)) if silent else other(failed)
        values = measured(self.figure, records)
        bad = sum(not self.split.is_good(value) for value in values)
        margin = 2 * bad - len(values)
        if abs(margin) >= MARGIN:
            return BAD if margin > 0 else GOOD
        if len(records) < MOST:
            return None
        return State(Kind.UNKNOWN, f"ambiguous: {bad} of {len(values)} samples are bad")

    def said(self, samples: Sequence[StoredJob]) -> str:
        """Return what was measured at one point, in words."""
        records = [side.record for side in samples]
        failed = next((record for record in records if record.outcome is not Outcome.OK), None)
        return told(self.figure, records) if failed is None else quoted(ending(failed))


def between(
    figure: Figure, good: Sequence[StoredJob], bad: Sequence[StoredJob], names: tuple[str, str]
) -> ByFigure | None:
    """Return the question that tells two ends apart by a figure, None if more must be measured.

    Args:
        figure: What is measured.
        good: What was seen at the good end so far.
        bad: What was seen at the bad one.
        names: What they are called.

    Raises:
        EndsError: If one of them fails, or they overlap however often they are measured.
    """
    ends = [[side.record for side in samples] for samples in (good, bad)]
    for records, name in zip(ends, names, strict=True):
        failed = next((record for record in records if record.outcome is not Outcome.OK), None)
        if failed is not None:
            raise EndsError(f"{name}: no {figure.name} to measure: {quoted(ending(failed))}")
        if not measured(figure, records):
            raise EndsError(
                f"{name}: has no {figure.name}; expected a --stage, --region or --metric of its own"
            )
    if min(map(len, ends)) < FIRST:
        return None
    found = split(measured(figure, ends[0]), measured(figure, ends[1]), figure.resolution)
    if found is not None:
        return ByFigure(figure, found)
    if min(map(len, ends)) < MOST:
        return None
    said = " and ".join(
        f"{name} {told(figure, records)}" for name, records in zip(names, ends, strict=True)
    )
    raise EndsError(f"{figure.name}: ambiguous, the ends overlap: {said}; name other ends")


def measured(figure: Figure, records: Sequence[Record]) -> list[float]:
    """Return a figure of each record that has it.

    Args:
        figure: What is measured.
        records: Samples of one point.
    """
    return [value for record in records if (value := figure.of(record)) is not None]


def told(figure: Figure, records: Sequence[Record]) -> str:
    """Return what was measured at one point, in words.

    Args:
        figure: What is measured.
        records: Samples of one point, one of them with the figure.
    """
    values = measured(figure, records)
    low, mid, high = (figure.told(value) for value in (min(values), median(values), max(values)))
    return f"median {mid} of {len(values)} ({low} to {high})"
