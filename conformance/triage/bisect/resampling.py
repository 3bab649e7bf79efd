"""How often a good point must be tried where the bad one is bad only at times. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

UNLIKELY: Final = 0.01
"""The probability of a false good point that is low enough."""
MOST: Final = 40
"""Runs of one point; a failure in fewer than one run of nine would take more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resampled:
    """Runs of the last good point, and how likely they are by chance.

    Attributes:
        runs: How often the point was tried, and was good each time.
        rate: Share of the runs of the first bad point that were bad.
    """

    runs: int
    rate: float

    @property
    def chance(self) -> float:
        """Probability that a point which fails at that rate is good in all of these runs."""
        return (1 - self.rate) ** self.runs

    @property
    def is_enough(self) -> bool:
        """Whether a false good point is unlikely."""
        return self.chance <= UNLIKELY


def runs_needed(rate: float) -> int:
    """Return how many good runs make a false good point unlikely, at most `MOST`.

    Args:
        rate: Share of the runs of a bad point that are bad, above 0.
    """
    if rate >= 1:
        return 1
    return min(math.ceil(math.log(UNLIKELY) / math.log1p(-rate)), MOST)
