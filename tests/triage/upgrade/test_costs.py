"""The difference of time or memory by which the release of a change is searched for."""

from __future__ import annotations

from conformance.bench.comparison import (
    CaseComparison,
    GrowthComparison,
    MemoryComparison,
    TimeComparison,
)
from conformance.bench.growth import ExponentChange
from conformance.bench.measured import Clock
from conformance.bench.statistics import Ratio
from conformance.triage.upgrade.costs import SearchedCost, choose_searched


def time(phase: str, ratio: float, clock: Clock = Clock.CPU) -> TimeComparison:
    """Return an alarm about the time of a phase."""
    seen = Ratio(estimate=ratio, low=ratio * 0.99, high=ratio * 1.01, p=1e-6, pairs=20)
    return TimeComparison(
        phase=phase,
        clock=clock,
        before=1.0,
        after=ratio,
        ratio=seen,
        fastest=ratio,
        confirmed=True,
        adjusted=1e-5,
    )


GROWTH = GrowthComparison(phase="run", exponents=ExponentChange(1.0, 2.0, 1.0, 0.8, 1.2))
LEAK = MemoryComparison(name="leak", before=(0.0, 0.0), after=(2**20, 2**20))
PLAN = MemoryComparison(name="plan.temp", before=(1.0, 1.0), after=(2**30, 2**30))


def choose(*alarms: TimeComparison | GrowthComparison | MemoryComparison) -> SearchedCost:
    """Return what is searched for of a case with these alarms."""
    comparison = CaseComparison(
        case="f/a", size=8, cells=("a", "b"),
        time=tuple(one for one in alarms if isinstance(one, TimeComparison)),
        growth=tuple(one for one in alarms if isinstance(one, GrowthComparison)),
        memory=tuple(one for one in alarms if isinstance(one, MemoryComparison)),
    )  # fmt: skip
    assert comparison.alarms
    return choose_searched(comparison)


def test_a_large_ratio_comes_before_growth_and_that_before_a_small_ratio() -> None:
    """A few samples show the first; load cannot hide the second."""
    assert choose(time("run", 5.0), GROWTH) == ("time", "run", True)
    assert choose(time("run", 1.2), GROWTH) == ("growth", "run", True)
    assert choose(time("run", 0.3), time("lower", 0.5)) == ("time", "run", False)


def test_memory_is_searched_for_if_time_is_equal() -> None:
    """By its own metric."""
    assert choose(LEAK) == ("leak", None, True)
    assert choose(LEAK, time("compile", 0.8)) == ("time", "compile", False)


def test_no_search_measures_a_plan_or_waiting() -> None:
    """Such a difference is reported without a release."""
    assert choose(PLAN) == ("", None, True)
    assert choose(time("run", 1.5, Clock.WALL)) == ("", "run", True)


def test_wall_clock_time_of_a_slower_phase_is_no_second_difference() -> None:
    """It follows from the processor time."""
    both = (time("run", 1.5), time("run", 1.5, Clock.WALL), time("lower", 1.5, Clock.WALL))
    comparison = CaseComparison(case="f/a", size=None, cells=("a", "b"), time=both)
    assert comparison.alarms == (both[0], both[2])
