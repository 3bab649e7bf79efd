"""Comparisons of time and memory as text."""

from __future__ import annotations

from dataclasses import replace

from conformance.bench.comparison import (
    CaseComparison,
    GrowthComparison,
    MemoryComparison,
    TimeComparison,
)
from conformance.bench.growth import ExponentChange
from conformance.bench.measured import Clock
from conformance.bench.statistics import Ratio
from conformance.report.bench.text import (
    describe_alarm,
    describe_comparison,
    format_size,
    format_taken,
    summarize_comparisons,
)

SLOWER = TimeComparison(
    phase="run", clock=Clock.CPU, before=2e-4, after=3e-4,
    ratio=Ratio(1.5, 1.4, 1.6, 0.0001, 16), fastest=1.5, confirmed=True, adjusted=0.001,
)  # fmt: skip
SAME = replace(SLOWER, phase="trace", ratio=Ratio(1.01, 0.98, 1.03, 0.5, 5), confirmed=False)
CASE = CaseComparison(case="family/loop", size=None, cells=("a", "b"), time=(SLOWER, SAME))


def test_a_line_has_what_differs() -> None:
    """With both times and the interval of the ratio."""
    assert describe_comparison(CASE) == (
        "family/loop: run 1.50 times (1.40 to 1.60, cpu, 200 µs -> 300 µs)"
    )


def test_ratios_far_from_one_keep_their_digits() -> None:
    """A loop that is no longer quadratic is not 0.00 times as slow."""
    faster = replace(SLOWER, before=29e-3, after=64e-6, ratio=Ratio(0.0022, 0.002, 0.12, 0.0, 16))
    slower = replace(SLOWER, before=64e-6, after=29e-3, ratio=Ratio(459.9, 99.1, 560.0, 0.0, 16))
    assert describe_alarm(faster) == "run 0.0022 times (0.002 to 0.12, cpu, 29 ms -> 64 µs)"
    assert describe_alarm(slower) == "run 460 times (99.10 to 560, cpu, 64 µs -> 29 ms)"


def test_growth_and_memory_are_told_in_their_units() -> None:
    """With the size at which the case was measured."""
    grown = GrowthComparison(phase="run", exponents=ExponentChange(1.02, 1.98, 0.96, 0.8, 1.1))
    leak = MemoryComparison(name="leak", before=(0.0,), after=(2.0**20,))
    found = replace(CASE, size=2048, time=(SLOWER,), growth=(grown,), memory=(leak,))
    assert describe_comparison(found) == (
        "family/loop at 2048: run 1.50 times (1.40 to 1.60, cpu, 200 µs -> 300 µs); "
        "run grows like n^1.0 -> n^2.0; memory of leak 0 B -> 1 MiB"
    )


def test_estimates_of_the_compiler_are_named_as_such() -> None:
    """They stand for the time on an accelerator that the host lacks."""
    flops = MemoryComparison(name="cost.flops", before=(2e9,), after=(1e9,))
    assert describe_comparison(replace(CASE, time=(), memory=(flops,))) == (
        "family/loop: XLA's estimate of flops 2e+09 -> 1e+09"
    )


def test_a_line_without_a_difference_has_the_ratios() -> None:
    """Of processor time, by phase."""
    assert describe_comparison(replace(CASE, time=(SAME,))) == (
        "family/loop: no difference (trace 1.01)"
    )


def test_what_could_not_be_measured_says_why() -> None:
    """It counts in the last line."""
    failed = replace(CASE, time=(), problem="b: raised: TypeError: no")
    assert describe_comparison(failed) == ("family/loop: not measured: b: raised: TypeError: no")
    *alarms, last = summarize_comparisons([CASE, failed])
    assert alarms[0].startswith("a -> b: family/loop: run 1.50 times")
    assert last == (
        "2 comparisons of cases, 2 phases, 1 measured again; "
        "1 case with a difference, 1 not measured"
    )


def test_units() -> None:
    """Three digits, of the unit in which they are read."""
    assert format_taken(Clock.WALL, 1.5) == "1.5 s"
    assert format_taken(Clock.CPU, 2.5e-8) == "0.025 µs"
    assert format_taken(Clock.INSTRUCTIONS, 123456) == "1.23e+05"
    assert format_size("plan.temp_size_in_bytes", 3 * 2**30) == "3 GiB"
    assert format_size("fusions", 12) == "12"
