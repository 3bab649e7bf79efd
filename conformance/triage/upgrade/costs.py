"""Changes of time and memory between the ends of an upgrade. Pure."""

from __future__ import annotations

from math import log
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from conformance.bench.comparison import GrowthComparison, TimeComparison
from conformance.bench.measured import Clock
from conformance.model.run_files import CulpritCommit

if TYPE_CHECKING:
    from conformance.bench.comparison import CaseComparison, Comparison


LARGE: Final = 2.0
"""Ratio of processor times that a few samples on a busy host tell apart."""


SEARCHED: Final = {"compile": "memory", "run": "memory", "leak": "leak"}
"""Predicate, as for `--when`, of each name of memory that a search measures."""


class CostChange(msgspec.Struct, frozen=True, kw_only=True):
    """A case that takes more or less time or memory at the new end.

    Attributes:
        case: Case id.
        platform: The platform.
        is_worse: Whether it takes more, by the difference that was searched for.
        differences: What differs between the ends, in words.
        last: The last release before the change, empty if it was not found.
        changed_in: The first release after it.
        layer: The layer that made it, with the reason; empty if it was not searched for.
        commits: The commit of jax that made it; several if one of them did.
        problem: Why the release, the layer or the commit is not known.
    """

    case: str
    platform: str
    is_worse: bool
    differences: tuple[str, ...]
    last: str = ""
    changed_in: str = ""
    layer: str = ""
    commits: tuple[CulpritCommit, ...] = ()
    problem: str = ""


class SearchedCost(NamedTuple):
    """The difference of a case whose release is searched for.

    Attributes:
        when: Predicate as for `--when`, empty if no search measures the difference.
        phase: Phase as for `--phase`, None for memory.
        is_worse: Whether the new end takes more.
    """

    when: str
    phase: str | None
    is_worse: bool


def choose_searched(comparison: CaseComparison) -> SearchedCost:
    """Return the difference by which the release of a change is searched for.

    A large ratio of processor time first, which a few samples show; then growth, which other load
    of the host cannot hide; then smaller ratios, and memory.

    Args:
        comparison: The comparison of both ends, with at least one alarm.
    """

    def weigh(alarm: Comparison) -> tuple[int, float]:
        if isinstance(alarm, GrowthComparison):
            return 3, abs(alarm.difference)
        if isinstance(alarm, TimeComparison):
            ratio = abs(log(alarm.ratio.estimate))
            return (0 if alarm.clock is not Clock.CPU else 4 if ratio > log(LARGE) else 2), ratio
        return int(alarm.name in SEARCHED), 0.0

    alarm = max(comparison.alarms, key=weigh)
    if isinstance(alarm, GrowthComparison):
        return SearchedCost("growth", alarm.phase, alarm.difference > 0)
    if isinstance(alarm, TimeComparison):
        when = "time" if alarm.clock is Clock.CPU else ""
        return SearchedCost(when, alarm.phase, alarm.ratio.estimate > 1)
    low, high = alarm.medians
    return SearchedCost(SEARCHED.get(alarm.name, ""), None, high > low)
