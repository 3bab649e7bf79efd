"""Comparisons of two cells: what is an alarm, and what is not."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from conformance.bench.comparison import (
    CaseComparison,
    Comparison,
    MemoryComparison,
    TimeComparison,
    adjust_comparisons,
    compare_growth,
    compare_memory,
    compare_times,
    to_json,
)
from conformance.bench.measured import Clock, Compiled, Measured, Taken
from conformance.bench.statistics import estimate_ratio

RUN = {("run", Clock.CPU), ("run", Clock.WALL)}
CELLS = ("jax0.8.1-py311-cpu8", "jax0.8.2-py311-cpu8")


class Noise:
    """The noise of the host, the same in each test in whatever order they run."""

    generator = np.random.default_rng(5)


@pytest.fixture(autouse=True)
def _same_noise() -> None:
    Noise.generator = np.random.default_rng(5)


def measured(run: float, noise: float = 0.02, **memory: int) -> Measured:
    """Return a measurement whose phase `run` takes these seconds, with noise."""
    seconds = run * float(np.exp(Noise.generator.normal(0, noise)))
    taken = Taken(wall=1.1 * seconds, cpu=seconds)
    return Measured(size=None, passes=2, phases={"run": taken}, memory=memory)


def compare(before: float, after: float, pairs: int = 16, noise: float = 0.02) -> CaseComparison:
    """Return a confirmed comparison of a case that takes these seconds."""
    sides = [[measured(seconds, noise) for _ in range(pairs)] for seconds in (before, after)]
    time = compare_times(sides[0], sides[1], confirm=RUN)
    return CaseComparison(case="family/name", size=None, cells=CELLS, time=time)


def test_a_slowdown_of_ten_percent_is_an_alarm() -> None:
    """Of both clocks; that of the processor stands for both."""
    (found,) = adjust_comparisons([compare(0.01, 0.011)])
    assert [one.clock for one in found.time if one.alarm] == [Clock.CPU, Clock.WALL]
    assert found.alarms == (found.time[0],)
    assert found.time[0].ratio.estimate == pytest.approx(1.1, rel=0.03)


def test_equal_releases_and_small_differences_are_none() -> None:
    """Two percent would change nothing for anybody, however certain."""
    found = adjust_comparisons([compare(0.01, 0.01), compare(0.01, 0.0102, 40, 0.001)])
    assert [one.alarms for one in found] == [(), ()]


def test_what_was_not_measured_again_is_no_alarm() -> None:
    """The first pairs are those that raised the suspicion."""
    before, after = ([measured(s) for _ in range(16)] for s in (0.01, 0.02))
    time = compare_times(before, after)
    (found,) = adjust_comparisons(
        [CaseComparison(case="family/name", size=None, cells=CELLS, time=time)]
    )
    assert all(one.is_suspicious() for one in found.time)
    assert found.alarms == ()


def test_one_slow_measurement_is_no_suspicion() -> None:
    """The fastest of each cell are alike: other load explains the rest."""
    before = [measured(0.01, 0.001) for _ in range(3)]
    after = [measured(s, 0.001) for s in (0.01, 0.03, 0.02)]
    (cpu, _) = compare_times(before, after)
    assert cpu.ratio.estimate > 1.2
    assert not cpu.is_suspicious()
    (slower, _) = compare_times(before, [measured(0.02, 0.001) for _ in range(3)])
    assert slower.is_suspicious()
    (faster, _) = compare_times([measured(0.02, 0.001) for _ in range(3)], before)
    assert faster.is_suspicious()


def test_p_values_are_adjusted_for_their_number() -> None:
    """One of many equal comparisons is small by chance."""
    many = [compare(0.01, 0.01, 6) for _ in range(40)]
    adjusted = [time.adjusted for case in adjust_comparisons(many) for time in case.time]
    raw = [time.ratio.p for case in many for time in case.time]
    assert all(low <= high for low, high in zip(raw, adjusted, strict=True))
    assert min(adjusted) > min(raw)


def test_a_loop_that_became_quadratic_is_an_alarm() -> None:
    """No quiet host is needed: the noise here is 10 percent."""
    sides = [
        {n: [measured(1e-4 + 1e-6 * n**p / 10 ** (p - 1), 0.1) for _ in range(3)] for n in SIZES}
        for p in (1, 2)
    ]
    (growth,) = compare_growth(*sides)
    assert growth.exponents.before == pytest.approx(1, abs=0.3)
    assert growth.exponents.after == pytest.approx(2, abs=0.3)
    assert growth.alarm
    (same,) = compare_growth(sides[1], sides[1])
    assert not same.alarm


SIZES = (100, 200, 400, 800)


@pytest.mark.parametrize(
    ("name", "before", "after", "alarm"),
    [
        ("leak", (0, 100, -50), (2**20, 2**20, 2**20 + 9), True),
        ("leak", (0, 2**20), (2**20, 2**20), False),  # not apart
        ("leak", (183_000, 184_000), (-78_000, -79_000), False),  # the allocator gives back
        ("run", (2**20, 2**20), (2**26, 2**26), True),
        ("run", (2**20, 2**20), (2**21, 2**21), False),  # 1 MiB is noise
        ("plan.temp_size_in_bytes", (2**30, 2**30), (2**31, 2**31), True),
        ("fusions", (1, 1), (9, 9), False),  # a fact, not a cost
    ],
)
def test_memory_is_an_alarm_if_it_is_apart_and_matters(
    name: str, before: tuple[float, ...], after: tuple[float, ...], alarm: bool
) -> None:
    """No measurement may contradict it."""
    assert MemoryComparison(name=name, before=before, after=after).alarm is alarm


def test_an_estimate_is_an_alarm_where_nothing_runs() -> None:
    """Compiled for an accelerator that the host lacks; where a case runs, its time counts."""
    flops = MemoryComparison(name="cost.flops", before=(2e9,), after=(1e9,))
    few = MemoryComparison(name="cost.bytes accessed", before=(100.0,), after=(105.0,))
    ratio = estimate_ratio([0.0] * 5)

    def find_alarms(phase: str) -> tuple[Comparison, ...]:
        time = TimeComparison(
            phase=phase, clock=Clock.CPU, before=0.01, after=0.01, ratio=ratio, fastest=1.0
        )
        return CaseComparison(
            case="family/name", size=None, cells=CELLS, time=(time,), memory=(flops, few)
        ).alarms

    assert find_alarms("compile") == (flops,)
    assert find_alarms("run") == ()


def test_sizes_that_only_one_cell_has_are_left_out() -> None:
    """Releases before 0.7.2 plan no peak."""
    plan = Compiled(plan={"temp_size_in_bytes": 8}, cost={"flops": 2.0, "utilization0{}": 1.0})
    seen = Measured(size=None, passes=1, phases={}, memory={"baseline": 5, "run": 7})
    before, after = [msgspec.structs.replace(seen, compiled=plan)], [seen]
    assert [one.name for one in compare_memory(before, after)] == ["run"]
    assert {one.name for one in compare_memory(before, before)} == {
        "run",
        "plan.temp_size_in_bytes",
        "cost.flops",
    }


def test_a_comparison_as_json() -> None:
    """A row for each phase and clock, or one with the problem."""
    (found,) = adjust_comparisons([compare(0.01, 0.02)])
    row = to_json(found)[0]
    assert (row["case"], row["phase"], row["clock"], row["alarm"]) == (
        "family/name",
        "run",
        "cpu",
        True,
    )
    assert row["low"] < row["ratio"] < row["high"]
    problem = CaseComparison(case="family/name", size=4, cells=CELLS, problem="raised: no")
    assert to_json(problem) == [
        {"case": "family/name", "size": 4, "cells": list(CELLS), "problem": "raised: no"}
    ]
