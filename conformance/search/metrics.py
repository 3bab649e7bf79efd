"""Numbers that are measured of a trial: seconds, bytes, exponents, and what a program prints."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Final

from conformance.bench.growth import fit_exponent
from conformance.bench.measured import MEASUREMENTS, decode_measured
from conformance.model.case import FEWEST_SIZES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from conformance.bench.measured import Measured
    from conformance.engine.runs.stored_job import StoredJob

MIB: Final = 2**20
KIB: Final = 2**10
MILLISECOND: Final = 1e-3
SHORTEST: Final = 1e-5
"""Seconds below which a difference is noise of a clock of microseconds on a shared host."""
QUICKEST: Final = 2e-7
"""The same for a phase, which is the average of many calls."""
SAME_PHASE: Final = 0.05
"""Relative difference of the times of a phase that two jobs on a busy host may have."""
SAME_GROWTH: Final = 0.3
"""Largest difference of exponents that is none."""
SAME_LEAK: Final = 32 * KIB
"""Bytes a call, a difference of which is the noise of an allocator."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """A number that is measured of a trial.

    Attributes:
        name: Name of the metric.
        of: Function that returns the metric of a trial, None if it was not measured.
        render: Function that formats the metric.
        resolution: Largest difference of equal medians.
        margin: The same, relative to the good end.
        needs: What a target without the metric lacks, for the error.
        of_case: Whether a case is measured as by `conformance bench`.
    """

    name: str
    of: Callable[[StoredJob], float | None]
    render: Callable[[float], str]
    resolution: float = 0.0
    margin: float = 0.0
    needs: str = "expected a --phase, --region or --metric of its own"
    of_case: bool = False

    def collect_values(self, samples: Sequence[StoredJob]) -> list[float]:
        """Return the metric of each trial that has it."""
        return [value for sample in samples if (value := self.of(sample)) is not None]

    def summarize(self, samples: Sequence[StoredJob]) -> str:
        """Return the median and the range of trials, at least one of which has the metric."""
        values = self.collect_values(samples)
        low, mid, high = map(self.render, (min(values), median(values), max(values)))
        return f"median {mid} of {len(values)} ({low} to {high})"


def make_phase_metric(phase: str) -> Metric:
    """Return the processor time of a phase of a case at its largest size.

    Args:
        phase: One of `conformance.bench.measured.PHASES`.
    """

    def of(sample: StoredJob) -> float | None:
        measured = _load_measured(sample)
        taken = measured[-1].phases.get(phase) if measured else None
        return taken.cpu or None if taken else None

    return Metric(
        name=f"time of phase {phase}", of=of, render=format_seconds, resolution=QUICKEST,
        margin=SAME_PHASE, of_case=True,
    )  # fmt: skip


def make_growth_metric(phase: str) -> Metric:
    """Return the exponent with which the processor time of a phase grows.

    Args:
        phase: One of `conformance.bench.measured.PHASES`.
    """

    def of(sample: StoredJob) -> float | None:
        seconds = {
            one.size: [one.phases[phase].cpu]
            for one in _load_measured(sample)
            if one.size is not None and phase in one.phases and one.phases[phase].cpu > 0
        }
        return fit_exponent(seconds) if len(seconds) >= FEWEST_SIZES else None

    return Metric(
        name=f"growth of phase {phase}", of=of, render=lambda value: f"n^{value:.2f}",
        resolution=SAME_GROWTH, of_case=True,
        needs=f"expected a case with at least {FEWEST_SIZES} sizes and this phase",
    )  # fmt: skip


def make_region_metric(region: str) -> Metric:
    """Return the seconds that a region of a program takes at its fastest."""
    return _make_time_metric(f"time of region {region}", f"region {region}")


def _make_time_metric(name: str, *keys: str) -> Metric:
    def of(sample: StoredJob) -> float | None:
        seconds = sample.record.seconds
        return next((seconds[key] for key in keys if key in seconds), None)

    return Metric(name=name, of=of, render=format_seconds, resolution=SHORTEST)


def _load_measured(sample: StoredJob) -> tuple[Measured, ...]:
    """Return the measurements of a trial of a case, empty for other trials.

    Raises:
        CorruptBlobError: If they are missing or changed.
    """
    name = sample.record.artifacts.get(MEASUREMENTS)
    return () if name is None else decode_measured(sample.blobs.get(name))


def _measure_memory(sample: StoredJob) -> float | None:
    measured = _load_measured(sample)
    if not measured:
        # A job that was not measured has 0.
        return float(sample.record.max_rss_bytes) or None
    memory = measured[-1].memory
    return float(max(memory.get("compile", 0), memory.get("run", 0)))


def _measure_leak(sample: StoredJob) -> float | None:
    measured = _load_measured(sample)
    leak = measured[-1].memory.get("leak") if measured else None
    return None if leak is None else float(leak)


def format_seconds(value: float) -> str:
    """Return seconds with a unit that suits them, e.g. `91.2 ms`."""
    if value >= 1:
        return f"{value:.2f} s"
    return f"{value * 1e3:.3g} ms" if value >= MILLISECOND else f"{value * 1e6:.3g} µs"


TIME: Final = _make_time_metric("time", "regions", "own", "job")
"""Seconds of a job: the regions that a program times, otherwise all except its imports."""
PRINTED: Final = Metric(
    name="metric",
    of=lambda sample: sample.record.facts.get("metric"),
    render=lambda value: f"{value:g}",
)
"""A number that a program prints."""
MEMORY: Final = Metric(
    name="memory",
    of=_measure_memory,
    render=lambda bytes_: f"{bytes_ / MIB:,.0f} MiB",
    resolution=MIB,
    of_case=True,
)
"""Peak resident memory in bytes: of a case by how much it rises, of others that of the process."""
LEAK: Final = Metric(
    name="leak",
    of=_measure_leak,
    render=lambda bytes_: f"{bytes_ / KIB:,.0f} KiB a call",
    resolution=SAME_LEAK,
    needs="expected a case that is called",
    of_case=True,
)
"""Bytes that each call of a case leaves behind."""
