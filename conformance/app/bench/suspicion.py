"""A case that may differ in two cells: the rounds that decide, and what they show."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from conformance.bench.comparison import compare_growth, compare_times

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from conformance.app.bench.rounds import CaseRounds
    from conformance.bench.comparison import CaseComparison, GrowthComparison, TimeComparison
    from conformance.bench.measured import Clock

LEAST: Final = 10
"""Rounds that decide, at least."""
GLANCE: Final = 4
"""Rounds that decide after which a difference is looked for no longer if it is gone or certain."""
CERTAIN: Final = 3e-4
"""P-value of a difference that remains one among many others; the least of 13 pairs."""
LAYOUT: Final = 0.5
"""Relative difference that the addresses of a worker may make in all of its jobs."""


@dataclass(slots=True, kw_only=True)
class Suspicion:
    """A case that may differ in two cells.

    The rounds that raised the suspicion were selected: only new ones decide.

    Attributes:
        found: The comparison by the first rounds.
        pair: Indices of the cells.
        suspected: Phases and clocks in which they may differ.
        others: Logarithms of ratios of other cells, by phase and clock; see `estimate_ratio`.
        rounds: The rounds that decide.
        decided: What these show so far.
    """

    found: CaseComparison
    pair: tuple[int, int]
    suspected: set[tuple[str, Clock]]
    others: Mapping[tuple[str, Clock], Sequence[float]]
    rounds: CaseRounds
    decided: tuple[TimeComparison, ...] = field(default=())

    @property
    def is_small(self) -> bool:
        """Whether the addresses of the workers may explain a difference."""
        return any(one.is_within(LAYOUT) for one in self.found.time if one.key in self.suspected)

    @property
    def grows(self) -> bool:
        """Whether the growth with the size may differ, too."""
        return any(one.is_suspicious for one in self.found.growth)

    def is_over(self, *, threshold: float, precision: float, is_late: bool) -> bool:
        """Compare the rounds so far, and return whether they decide.

        Args:
            threshold: Distance of a ratio from 1 that is a suspicion.
            precision: Half of the width of an interval that is wanted.
            is_late: Whether there is no time for another round.
        """
        if self.rounds.problems:
            return True
        sides = [self.rounds.select_largest(index) for index in self.pair]
        number = len(sides[0])
        if number < LEAST and number != GLANCE and not is_late:
            return False
        self.decided = compare_times(*sides, confirm=self.suspected, others=self.others)
        open_ones = [one for one in self.decided if one.is_suspicious(threshold)]
        certain = [one for one in open_ones if one.ratio.p <= CERTAIN]
        if is_late:
            return True
        # One certain difference is enough, and what differs by less than was asked for is none.
        is_clear = any(one.is_outside and one.is_decided(precision) for one in certain)
        rest = [one for one in open_ones if one.is_outside or not one.is_decided(precision)]
        is_decided = len(certain) == len(open_ones) if number == GLANCE else is_clear or not rest
        return is_decided and not self._has_open_growth({one.phase for one in certain})

    def _has_open_growth(self, phases: set[str]) -> bool:
        """Return whether the growth of phases that differ is no alarm yet, and may become one."""
        growth = [one for one in self._compare_growth() if one.phase in phases]
        return any(one.is_open for one in growth) and not any(one.alarm for one in growth)

    def conclude(self) -> CaseComparison:
        """Return the comparison of the cells, with what the rounds decided."""
        if self.rounds.problems:
            return replace(self.found, problem="; ".join(self.rounds.problems.values()))
        rest = [one for one in self.found.time if one.key not in self.suspected]
        return replace(self.found, time=(*self.decided, *rest), growth=self._compare_growth())

    def _compare_growth(self) -> tuple[GrowthComparison, ...]:
        if not self.grows:
            return self.found.growth
        return compare_growth(*(self.rounds.group_sizes(index) for index in self.pair))
