"""Statistics of paired measurements: a robust ratio, its interval, a permutation test.

Measurements of two releases are taken in turn, so that slow drift of the host meets both. A pair is
the logarithm of a ratio; one outlier moves neither the estimate nor the test far.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, sqrt
from statistics import NormalDist
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

EXACT: Final = 12
"""Pairs up to which the test looks at every assignment of signs."""
SAMPLES: Final = 20_000
"""Random assignments of signs for more pairs."""


@dataclass(frozen=True, slots=True)
class Ratio:
    """A ratio of two releases, estimated from pairs.

    Attributes:
        estimate: The Hodges-Lehmann estimate.
        low: Lower end of its confidence interval.
        high: Upper end.
        p: Probability of a difference at least as large between equal releases.
        pairs: Number of pairs.
    """

    estimate: float
    low: float
    high: float
    p: float
    pairs: int

    @property
    def width(self) -> float:
        """Half of the interval, relative to the estimate."""
        return (self.high - self.low) / 2 / self.estimate


def estimate_ratio(
    logs: Sequence[float], *, others: Sequence[float] = (), level: float = 0.95
) -> Ratio:
    """Estimate the ratio of paired measurements.

    The estimate is the median of the averages of all pairs of logarithms (Hodges and Lehmann 1963),
    the interval consists of order statistics of these averages, by the normal approximation to the
    distribution of Wilcoxon's signed-rank statistic.

    Args:
        logs: Logarithm of the ratio of each pair.
        others: Logarithms of ratios of other pairs of releases, which were measured for all of them
            alike. With these the p-value is the smaller of that by permutation and of
            `rate_rarity`, doubled as there are two.
        level: Confidence of the interval.

    Raises:
        ValueError: If there are no pairs.
    """
    count = len(logs)
    if not count:
        raise ValueError("no pairs to estimate a ratio from")
    differences = np.asarray(logs, np.float64)
    rows, columns = np.triu_indices(count)
    averages = np.sort((differences[rows] + differences[columns]) / 2)
    total = len(averages)
    deviation = sqrt(count * (count + 1) * (2 * count + 1) / 24)
    rank = max(0, int(total / 2 - NormalDist().inv_cdf((1 + level) / 2) * deviation))
    p = permute_signs(differences)
    if others:
        p = min(1.0, 2 * min(p, rate_rarity(differences, np.asarray(others, np.float64))))
    return Ratio(
        estimate=exp(float(np.median(averages))),
        low=exp(float(averages[rank])),
        high=exp(float(averages[total - 1 - rank])),
        p=p,
        pairs=count,
    )


def permute_signs(differences: np.ndarray) -> float:
    """Return the p-value of differences by a permutation test: their signs are exchanged.

    If nothing differs, each difference is as likely as its negative. The statistic is the sum of
    signed ranks (Wilcoxon 1945), so that an outlier counts as the largest and no more.

    Args:
        differences: Differences of pairs, float64[n].
    """
    count = len(differences)
    order = np.argsort(np.argsort(np.abs(differences), kind="stable"), kind="stable")
    ranks = (order + 1.0) * (differences != 0)
    seen = abs(float((np.sign(differences) * ranks).sum()))
    if count <= EXACT:
        signs = 1 - 2 * ((np.arange(2**count)[:, None] >> np.arange(count)) & 1)
        return float((np.abs(signs @ ranks) >= seen - 1e-9).mean())
    generator = np.random.default_rng(count)
    signs = 1 - 2 * generator.integers(0, 2, (SAMPLES, count))
    # The assignment that was seen is one of them: p is never 0.
    return (int((np.abs(signs @ ranks) >= seen - 1e-9).sum()) + 1) / (SAMPLES + 1)


def rate_rarity(differences: np.ndarray, others: np.ndarray) -> float:
    """Return the p-value of differences by how rare ones as large are among others.

    A change of one release in many is seen in few pairs: if one other of 33 is as large, four new
    pairs that all are have the p-value (2 / 34) ** 4, which signs have after 18 pairs. Others that
    differ themselves, or are noisy, only make it larger.

    Args:
        differences: Differences of new pairs, float64[n].
        others: Differences of pairs measured in the same way before, float64[m].
    """
    if abs(np.sign(differences).sum()) < len(differences):
        return 1.0
    rarer = (np.abs(others) >= np.abs(differences).min()).sum()
    return float((1 + rarer) / (1 + len(others))) ** len(differences)


def adjust(p_values: Sequence[float]) -> list[float]:
    """Return p-values adjusted for their number (Benjamini and Hochberg 1995).

    Calling all below a level different makes that fraction of the calls wrong, in expectation.

    Args:
        p_values: P-values of all comparisons, in any order.
    """
    count = len(p_values)
    order = np.argsort(p_values, kind="stable")
    adjusted = [0.0] * count
    least = 1.0
    for rank in range(count, 0, -1):
        index = int(order[rank - 1])
        least = min(least, p_values[index] * count / rank)
        adjusted[index] = least
    return adjusted
