"""Comparisons of time and memory as text, a line for each case."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from conformance.bench.comparison import (
    GrowthComparison,
    MemoryComparison,
)
from conformance.bench.measured import Clock
from conformance.wording import plural

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from conformance.bench.comparison import CaseComparison, Comparison

BYTES: Final = {"compile", "run", "live", "leak", "hlo_bytes"}
"""Names of sizes in bytes; those of the plan are, too."""
_NEAR: Final = (0.1, 100.0)
_UNITS: Final = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"))


def describe_comparison(comparison: CaseComparison) -> str:
    """Return a comparison in a line: its alarms, else the ratios of its phases.

    Args:
        comparison: The comparison of a case.
    """
    size = "" if comparison.size is None else f" at {comparison.size}"
    head = f"{comparison.case}{size}:"
    if comparison.problem:
        return f"{head} not measured: {comparison.problem}"
    alarms = [describe_alarm(alarm) for alarm in comparison.alarms]
    if alarms:
        return f"{head} {'; '.join(alarms)}"
    ratios = [
        f"{one.phase} {format_ratio(one.ratio.estimate)}"
        for one in comparison.time
        if one.clock is Clock.CPU
    ]
    return f"{head} no difference ({', '.join(ratios)})"


def describe_alarm(alarm: Comparison) -> str:
    """Return an alarm in a few words.

    Args:
        alarm: The comparison.
    """
    match alarm:
        case GrowthComparison():
            return (
                f"{alarm.phase} grows like n^{alarm.exponents.before:.1f} -> "
                f"n^{alarm.exponents.after:.1f}"
            )
        case MemoryComparison():
            low, high = (format_size(alarm.name, size) for size in alarm.medians)
            if alarm.is_estimate:
                return f"XLA's estimate of {alarm.name.removeprefix('cost.')} {low} -> {high}"
            return f"memory of {alarm.name} {low} -> {high}"
        case _:
            ratio = alarm.ratio
            estimate, low, high = map(format_ratio, (ratio.estimate, ratio.low, ratio.high))
            before, after = (format_taken(alarm.clock, x) for x in (alarm.before, alarm.after))
            return (
                f"{alarm.phase} {estimate} times ({low} to {high}, {alarm.clock}, "
                f"{before} -> {after})"
            )


def format_ratio(ratio: float) -> str:
    """Return a ratio with two decimals, or with its first digits if it is far from 1."""
    if _NEAR[0] <= ratio < _NEAR[1]:
        return f"{ratio:.2f}"
    return f"{ratio:.2g}" if ratio < 1 else f"{ratio:.0f}"


def format_taken(clock: Clock, value: float) -> str:
    """Return seconds with a unit, or a number of instructions.

    Args:
        clock: The measure.
        value: The reading.
    """
    if clock is Clock.INSTRUCTIONS:
        return f"{value:.3g}"
    scale, unit = next((one for one in _UNITS if value >= one[0]), _UNITS[-1])
    return f"{value / scale:.3g} {unit}"


def format_size(name: str, size: float) -> str:
    """Return a size with a unit, or a number.

    Args:
        name: Name of the size, as in `MemoryComparison`.
        size: The size.
    """
    if name not in BYTES and not name.startswith("plan."):
        return f"{size:.6g}"
    for scale, unit in ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")):
        if abs(size) >= scale:
            return f"{size / scale:.3g} {unit}"
    return f"{size:.0f} B"


def summarize_comparisons(comparisons: Sequence[CaseComparison]) -> Iterator[str]:
    """Yield the alarms of each case, and a last line with counts.

    Args:
        comparisons: All comparisons, adjusted for their number.
    """
    for one in comparisons:
        if one.alarms:
            yield f"{' -> '.join(one.cells)}: {describe_comparison(one)}"
    yield count_comparisons(comparisons)


def count_comparisons(comparisons: Sequence[CaseComparison]) -> str:
    """Return the numbers of comparisons, phases and differences in a line.

    Args:
        comparisons: All comparisons, adjusted for their number.
    """
    alarmed = sum(bool(one.alarms) for one in comparisons)
    failed = sum(bool(one.problem) for one in comparisons)
    tests = sum(len(one.time) for one in comparisons)
    confirmed = sum(time.confirmed for one in comparisons for time in one.time)
    unmeasured = f", {failed} not measured" if failed else ""
    return (
        f"{plural(len(comparisons), 'comparison')} of cases, {plural(tests, 'phase')}, "
        f"{confirmed} measured again; {plural(alarmed, 'case')} with a difference{unmeasured}"
    )
