"""The growth of a measurement with the size of a case: the exponent of a power law."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from conformance.model.case import FEWEST_SIZES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

STEP: Final = 0.02
"""Distance of two exponents that are tried."""
LARGEST: Final = 4.0
"""Largest exponent that is tried."""
COUNTING: Final = 0.25
"""Quantile of the measurements of a size that counts: other load of the host can only add."""
RESAMPLES: Final = 200
"""Samples of the measurements for the interval."""
FLAT: Final = 1.2
"""Ratio of the measurements of the largest and the smallest size below which nothing grows."""


@dataclass(frozen=True, slots=True)
class Exponent:
    """The exponent p of `constant + factor * n ** p`.

    Attributes:
        estimate: Exponent that fits best; 0 for what does not grow.
        low: Lower end of its interval, 95 % of the resampled measurements.
        high: Upper end.
    """

    estimate: float
    low: float
    high: float


def fit_exponent(seconds: Mapping[int, Sequence[float]]) -> Exponent:
    """Fit the growth of measurements of several sizes.

    Args:
        seconds: Measurements of at least `FEWEST_SIZES` sizes; of each size `COUNTING` counts.

    Raises:
        ValueError: If there are fewer sizes than `FEWEST_SIZES`.
    """
    if len(seconds) < FEWEST_SIZES:
        raise ValueError(f"{len(seconds)} sizes, expected at least {FEWEST_SIZES}")
    sizes = np.array(sorted(seconds), np.float64)
    samples = [np.asarray(seconds[int(size)], np.float64) for size in sizes]
    generator = np.random.default_rng(len(seconds))
    drawn = [generator.choice(sample, (RESAMPLES, len(sample))) for sample in samples]
    seen = np.array([np.quantile(sample, COUNTING) for sample in samples])
    resampled = np.stack([np.quantile(sample, COUNTING, axis=1) for sample in drawn], axis=1)
    low, high = np.percentile(_fit(sizes, resampled), (2.5, 97.5))
    return Exponent(float(_fit(sizes, seen[None])[0]), float(low), float(high))


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
