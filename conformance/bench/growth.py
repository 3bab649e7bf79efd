"""The growth of a measurement with the size of a case: the exponent of a power law."""

from __future__ import annotations

from dataclasses import dataclass
from math import log
from typing import TYPE_CHECKING, Final

import numpy as np

from conformance.bench.statistics import estimate_ratio
from conformance.model.case import FEWEST_SIZES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

STEP: Final = 0.02
"""Distance of two exponents that are tried."""
LARGEST: Final = 4.0
"""Largest exponent that is tried."""
FLAT: Final = 1.2
"""Ratio of the measurements of the largest and the smallest size below which nothing grows."""


@dataclass(frozen=True, slots=True)
class ExponentChange:
    """The growth of two releases.

    Attributes:
        before: Exponent p of `constant + factor * n ** p` of the first release; 0 for what does not
            grow.
        after: That of the second release.
        difference: Exponent with which the ratio of both grows over the three largest sizes.
        low: Lower end of the interval of the difference, 95 %.
        high: Upper end.
    """

    before: float
    after: float
    difference: float
    low: float
    high: float


def fit_exponent(seconds: Mapping[int, Sequence[float]]) -> float:
    """Fit the growth of measurements of several sizes.

    Args:
        seconds: Measurements of at least `FEWEST_SIZES` sizes; of each size the fastest counts, as
            other load of the host can only add to it.

    Raises:
        ValueError: If there are fewer sizes than `FEWEST_SIZES`.
    """
    sizes = _list_sizes(seconds)
    fastest = np.array([[min(seconds[size]) for size in sizes]])
    return float(_fit(np.array(sizes, np.float64), fastest)[0])


def compare_exponents(
    before: Mapping[int, Sequence[float]], logs: Mapping[int, Sequence[float]]
) -> ExponentChange:
    """Compare the growth in two releases.

    Ratios of jobs that took turns are known much better than the times are, and a fit of a constant
    and a power to times is far off on a busy host. So the difference is one of ratios alone.

    Args:
        before: Measurements of the first release by size, of the same rounds for each size.
        logs: Logarithm of the ratio in each of these rounds, by size.

    Raises:
        ValueError: If there are fewer sizes than `FEWEST_SIZES`.
    """
    sizes = _list_sizes(before)
    fastest = np.array([min(before[size]) for size in sizes])
    ratios = np.exp([np.median(logs[size]) for size in sizes])
    first, second = _fit(np.array(sizes, np.float64), np.array([fastest, fastest * ratios]))
    middle, largest = sizes[-FEWEST_SIZES], sizes[-1]
    slopes = (np.array(logs[largest]) - np.array(logs[middle])) / log(largest / middle)
    ratio = estimate_ratio(slopes.tolist())
    difference, low, high = map(log, (ratio.estimate, ratio.low, ratio.high))
    return ExponentChange(float(first), float(second), difference, low, high)


def _list_sizes(seconds: Mapping[int, Sequence[float]]) -> list[int]:
    if len(seconds) < FEWEST_SIZES:
        raise ValueError(f"{len(seconds)} sizes, expected at least {FEWEST_SIZES}")
    return sorted(seconds)


def _fit(sizes: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return the exponent with the least relative error, of each row.

    Args:
        sizes: Sizes, float64[s].
        rows: Measurements, float64[r, s].
    """
    exponents = np.arange(STEP, LARGEST + STEP / 2, STEP)
    powers = (sizes / sizes[-1]) ** exponents[:, None]
    # Relative to the measurements, so that the smallest size counts as much as the largest.
    ones = 1 / rows[:, None]
    lines = powers / rows[:, None]
    best = exponents[np.argmin(_compute_error(ones, lines), axis=1)]
    return np.where(rows[:, -1] < FLAT * rows.min(axis=1), 0.0, best.round(2))


def _compute_error(ones: np.ndarray, lines: np.ndarray) -> np.ndarray:
    """Return the squared error of the best `constant * ones + factor * lines == 1`.

    Neither the constant nor the factor is negative.

    Args:
        ones: Values that the constant multiplies, float64[rows, 1, s].
        lines: Values that the factor multiplies, float64[rows, exponents, s].
    """
    a, b, c = (ones**2).sum(-1), (ones * lines).sum(-1), (lines**2).sum(-1)
    d, e = ones.sum(-1), lines.sum(-1)
    determinant = a * c - b**2
    with np.errstate(divide="ignore", invalid="ignore"):
        constant = (c * d - b * e) / determinant
        factor = (a * e - b * d) / determinant
    inside = (constant >= 0) & (factor >= 0) & (determinant > 0)
    # Otherwise the best point is on the edge, where one of the two is 0.
    constant = np.where(inside, constant, np.where(e**2 / c > d**2 / a, 0.0, d / a))
    factor = np.where(inside, factor, np.where(e**2 / c > d**2 / a, e / c, 0.0))
    error: np.ndarray = constant[..., None] * ones + factor[..., None] * lines - 1
    total: np.ndarray = (error**2).sum(-1)
    return total
