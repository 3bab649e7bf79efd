"""The comparison of two releases: time by phase, growth with the size, memory, the executable."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import log
from statistics import median
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from conformance.bench.growth import ExponentChange, compare_exponents
from conformance.bench.measured import COMPILED, PHASES, Clock, compare_taken, read_clock
from conformance.bench.statistics import Ratio, adjust, estimate_ratio
from conformance.model.case import FEWEST_SIZES

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from conformance.bench.measured import Measured

MARGIN: Final = 0.03
"""Ratios nearer to 1 are never alarms: few would change anything for them."""
LEVEL: Final = 0.01
"""Fraction of alarms about time that may be false."""
SUSPICIOUS: Final = 0.04
"""Distance of a first estimate from 1 that asks for more rounds."""
CONSISTENT: Final = 0.1
"""P-value of pairs that nearly all differ in the same direction; the least of five is 0.06."""
SHORT: Final = 2e-7
"""Seconds below which a measurement is the noise of a clock."""
STEEPER: Final = 0.5
"""Difference of exponents that is an alarm, e.g. from linear to n log n and beyond."""
LARGER: Final = 0.2
"""Relative difference of peak memory that is an alarm."""
LARGER_BYTES: Final = 8 * 2**20
"""Difference of peak memory below which it is no alarm, in bytes."""
COSTS: Final = ("flops", "bytes accessed")
"""Estimates of the compiler that are compared; those of single operands differ by release."""
COSTLIER: Final = 0.1
"""Relative difference of an estimate that is an alarm where nothing runs."""
LEAK_NOISE: Final = 4
"""How often a leak must exceed the bytes that some measurement lost."""
LEAKING: Final = 64 * 2**10
"""Difference of the bytes that each call leaves behind that is an alarm."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeComparison:
    """A phase of a case in two cells.

    Attributes:
        phase: The phase.
        clock: The measure.
        before: Median of the first cell, in seconds or instructions.
        after: Median of the second cell.
        ratio: After over before, from pairs.
        fastest: The same of the fastest measurement of each cell: other load can only add to one.
        confirmed: Whether the pairs were measured after the suspicion arose.
        adjusted: P-value, adjusted for all confirmed comparisons by `adjust_comparisons`; 1 of
            those not confirmed.
    """

    phase: str
    clock: Clock
    before: float
    after: float
    ratio: Ratio
    fastest: float
    confirmed: bool = False
    adjusted: float = 1.0

    @property
    def kind(self) -> str:
        """The difference without figures: the same for the same change on another day."""
        return f"{self.phase} {self.clock} {_describe_direction(self.ratio.estimate > 1)}"

    @property
    def key(self) -> tuple[str, Clock]:
        """The phase and the clock: what is compared."""
        return self.phase, self.clock

    @property
    def alarm(self) -> bool:
        """Whether the difference is certain, and large enough to matter."""
        return self.confirmed and self.adjusted <= LEVEL and self.is_outside

    @property
    def is_outside(self) -> bool:
        """Whether the whole interval is far enough from 1 to matter."""
        return self.ratio.low > 1 + MARGIN or self.ratio.high < 1 / (1 + MARGIN)

    def is_within(self, difference: float) -> bool:
        """Return whether neither cell takes longer than the other by more than this part."""
        return abs(log(self.ratio.estimate)) <= log(1 + difference)

    def is_decided(self, precision: float) -> bool:
        """Return whether more pairs would change nothing.

        Args:
            precision: Half of the width of the interval, relative to the ratio, that is wanted.
        """
        # Far from a difference that matters: more pairs would hardly make an alarm of it.
        inside = (
            1 / (1 + MARGIN) < self.ratio.estimate < 1 + MARGIN
            and self.ratio.low > 1 / (1 + 2 * MARGIN)
            and self.ratio.high < 1 + 2 * MARGIN
        )
        # A large ratio need not be known as precisely as one near 1.
        enough = max(precision, abs(log(self.ratio.estimate)) / 4)
        far = self.is_outside and self.ratio.width <= enough
        return inside or far or self.ratio.width <= precision

    def is_suspicious(self, threshold: float = SUSPICIOUS) -> bool:
        """Return whether more rounds are needed to tell if there is a difference.

        Args:
            threshold: Distance of the estimate from 1 from which on there may be one.
        """
        # One slow measurement moves the estimate; neither the fastest one nor every pair.
        ratios = [self.ratio.estimate]
        if self.ratio.p > CONSISTENT:
            ratios.append(self.fastest)
        is_slower = min(ratios) >= 1 + threshold
        is_faster = max(ratios) <= 1 / (1 + threshold)
        return (is_slower or is_faster) and max(self.before, self.after) > SHORT


@dataclass(frozen=True, slots=True, kw_only=True)
class GrowthComparison:
    """The growth of a phase with the size of a case, in two cells."""

    phase: str
    exponents: ExponentChange

    @property
    def difference(self) -> float:
        """The exponent by which the second cell grows faster than the first one."""
        return self.exponents.difference

    @property
    def kind(self) -> str:
        """The difference without figures."""
        return f"growth of {self.phase} {_describe_direction(self.difference > 0)}"

    @property
    def is_suspicious(self) -> bool:
        """Whether the estimate is half of an alarm."""
        return abs(self.difference) >= STEEPER / 2

    @property
    def is_open(self) -> bool:
        """Whether it is no alarm, and the interval has differences that would be one."""
        return not self.alarm and max(self.exponents.high, -self.exponents.low) >= STEEPER

    @property
    def alarm(self) -> bool:
        """Whether one grows faster than the other, and by how much matters."""
        is_certain = self.exponents.low > 0 or self.exponents.high < 0
        return abs(self.difference) >= STEEPER and is_certain


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryComparison:
    """A size of a case in two cells.

    Attributes:
        name: `compile`, `run`, `live` or `leak`, `plan.NAME`, `cost.NAME`, `fusions` ...
        before: Sizes in the first cell.
        after: Sizes in the second cell.
    """

    name: str
    before: tuple[float, ...]
    after: tuple[float, ...]

    @property
    def kind(self) -> str:
        """The difference without figures."""
        low, high = self.medians
        what = "estimate" if self.is_estimate else "memory"
        return f"{what} of {self.name} {_describe_direction(high > low)}"

    @property
    def is_estimate(self) -> bool:
        """Whether it is the compiler's estimate of what an executable does."""
        return self.name.startswith("cost.")

    @property
    def medians(self) -> tuple[float, float]:
        """The median of each cell."""
        return median(self.before), median(self.after)

    @property
    def alarm(self) -> bool:
        """Whether the difference matters, and no measurement contradicts it."""
        low, high = self.medians
        apart = max(self.before) < min(self.after) or max(self.after) < min(self.before)
        if self.name == "leak":
            # Memory that the allocator returned shows how large the noise is.
            noise = max(0.0, -min(*self.before, *self.after))
            return apart and abs(high - low) > LEAKING + LEAK_NOISE * noise
        if self.name in {"compile", "run", "live"} or self.name.startswith("plan."):
            far = abs(high - low) > max(LARGER * min(low, high), LARGER_BYTES)
            return apart and far
        return False

    @property
    def is_far_estimate(self) -> bool:
        """Whether it is an estimate that differs by more than `COSTLIER`."""
        low, high = sorted(self.medians)
        return self.is_estimate and high > low * (1 + COSTLIER)


def _describe_direction(is_more: bool) -> str:
    return "more" if is_more else "less"


Comparison: TypeAlias = TimeComparison | GrowthComparison | MemoryComparison


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseComparison:
    """A case in two cells.

    Attributes:
        case: Id of the case.
        size: Its size, None for a case without sizes.
        cells: Ids of both cells.
        time: Comparisons of phases, at the largest size.
        growth: Comparisons of growth, of a case with sizes.
        memory: Comparisons of sizes.
        problem: Why there is nothing to compare, empty if there is.
    """

    case: str
    size: int | None
    cells: tuple[str, str]
    time: tuple[TimeComparison, ...] = ()
    growth: tuple[GrowthComparison, ...] = ()
    memory: tuple[MemoryComparison, ...] = ()
    problem: str = ""

    @property
    def alarms(self) -> tuple[Comparison, ...]:
        """The comparisons that are alarms.

        Wall-clock time is one where the processor time is none; growth where the processor time at
        the largest size is one, as other growth is the noise of smaller sizes; an estimate of the
        compiler where nothing runs: for an accelerator that the host lacks.
        """
        runs = any(one.phase not in COMPILED for one in self.time)
        slower = {one.phase for one in self.time if one.alarm and one.clock is Clock.CPU}
        time = [one for one in self.time if one.clock is not Clock.WALL or one.phase not in slower]
        growth = [one for one in self.growth if one.phase in slower]
        found: tuple[Comparison, ...] = (*time, *growth, *self.memory)
        estimates = [] if runs else [one for one in self.memory if one.is_far_estimate]
        return (*(one for one in found if one.alarm), *estimates)


def compare_times(
    before: Sequence[Measured],
    after: Sequence[Measured],
    *,
    confirm: Collection[tuple[str, Clock]] = (),
    others: Mapping[tuple[str, Clock], Sequence[float]] = MappingProxyType({}),
) -> tuple[TimeComparison, ...]:
    """Compare the phases that both cells have.

    Args:
        before: Measurements in the first cell, by round.
        after: Measurements in the second cell, of the same rounds.
        confirm: Phases and clocks that are measured again, the only ones that are compared then;
            empty to compare all for the first time.
        others: Logarithms of ratios of other cells, by phase and clock; see `estimate_ratio`.
    """
    found = []
    for phase in PHASES:
        for clock in Clock:
            if confirm and (phase, clock) not in confirm:
                continue
            sides = [[measured.phases.get(phase) for measured in side] for side in (before, after)]
            ratios = [compare_taken(a, b, clock) for a, b in zip(*sides, strict=True)]
            logs = [one for one in ratios if one is not None]
            if logs and len(logs) == len(ratios):
                low, high = ([read_clock(taken, clock) or 0.0 for taken in side] for side in sides)
                ratio = estimate_ratio(logs, others=others.get((phase, clock), ()))
                found.append(
                    TimeComparison(
                        phase=phase, clock=clock, before=median(low), after=median(high),
                        ratio=ratio, fastest=min(high) / min(low), confirmed=bool(confirm),
                        adjusted=ratio.p if confirm else 1.0,
                    )
                )  # fmt: skip
    return tuple(found)


def compare_growth(
    before: Mapping[int, Sequence[Measured]], after: Mapping[int, Sequence[Measured]]
) -> tuple[GrowthComparison, ...]:
    """Compare how the processor time of each phase grows with the size.

    Args:
        before: Measurements in the first cell, by size.
        after: Measurements in the second cell, by size.
    """
    found = []
    sizes = sorted(before.keys() & after.keys())
    for phase in PHASES if len(sizes) >= FEWEST_SIZES else ():
        seconds: dict[int, list[float]] = {}
        logs: dict[int, list[float]] = {}
        for size in sizes:
            for low, high in zip(before[size], after[size], strict=False):
                log_ratio = compare_taken(low.phases.get(phase), high.phases.get(phase), Clock.CPU)
                if log_ratio is not None:
                    seconds.setdefault(size, []).append(low.phases[phase].cpu)
                    logs.setdefault(size, []).append(log_ratio)
        # Later rounds may have the largest size alone.
        count = min(len(logs.get(size, ())) for size in sizes)
        if count:
            first = ({size: side[size][:count] for size in sizes} for side in (seconds, logs))
            found.append(GrowthComparison(phase=phase, exponents=compare_exponents(*first)))
    return tuple(found)


def compare_memory(
    before: Sequence[Measured], after: Sequence[Measured]
) -> tuple[MemoryComparison, ...]:
    """Compare the sizes that both cells have.

    Args:
        before: Measurements in the first cell.
        after: Measurements in the second cell.
    """
    sides = [[_flatten(measured) for measured in side] for side in (before, after)]
    names = dict.fromkeys(name for side in sides for sizes in side for name in sizes)
    found = []
    for name in names:
        low, high = (tuple(float(sizes[name]) for sizes in side if name in sizes) for side in sides)
        if low and high:
            found.append(MemoryComparison(name=name, before=low, after=high))
    return tuple(found)


def _flatten(measured: Measured) -> dict[str, float]:
    compiled = measured.compiled
    sizes = {name: float(size) for name, size in measured.memory.items() if name != "baseline"}
    sizes |= {f"plan.{name}": float(size) for name, size in compiled.plan.items()}
    sizes |= {f"cost.{name}": value for name, value in compiled.cost.items() if name in COSTS}
    for name in ("hlo_bytes", "hlo_instructions", "fusions"):
        size = getattr(compiled, name)
        if size is not None:
            sizes[name] = float(size)
    return sizes


def adjust_comparisons(found: Iterable[CaseComparison]) -> list[CaseComparison]:
    """Return comparisons whose p-values are adjusted for the number of those confirmed.

    Args:
        found: All comparisons that are reported together.
    """
    cases = list(found)
    confirmed = [one for case in cases for one in case.time if one.confirmed]
    adjusted = iter(adjust([one.ratio.p for one in confirmed]))
    take: Callable[[TimeComparison], TimeComparison] = lambda one: (  # noqa: E731
        replace(one, adjusted=next(adjusted)) if one.confirmed else one
    )
    return [replace(case, time=tuple(map(take, case.time))) for case in cases]


def to_json(case: CaseComparison) -> list[dict[str, Any]]:
    """Return a comparison as JSON data: an object for each phase and clock.

    Args:
        case: The comparison.
    """
    exponents = {
        one.phase: {"a": one.exponents.before, "b": one.exponents.after} for one in case.growth
    }
    memory = {one.name: {"a": one.medians[0], "b": one.medians[1]} for one in case.memory}
    head = {"case": case.case, "size": case.size, "cells": list(case.cells)}
    if case.problem:
        return [{**head, "problem": case.problem}]
    return [
        {
            **head, "phase": one.phase, "clock": one.clock.value, "a": one.before, "b": one.after,
            "ratio": one.ratio.estimate, "low": one.ratio.low, "high": one.ratio.high,
            "p": one.adjusted if one.confirmed else one.ratio.p, "confirmed": one.confirmed,
            "pairs": one.ratio.pairs, "alarm": one.alarm,
            "exponent": exponents.get(one.phase), "memory": memory,
        }
        for one in case.time
    ]  # fmt: skip
