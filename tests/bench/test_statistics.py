"""Statistics of pairs: what they estimate, how often they err."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conformance.bench.statistics import adjust, estimate_ratio, permute_signs, rate_rarity

GENERATOR = np.random.default_rng(7)


def draw_pairs(ratio: float, count: int, noise: float = 0.05) -> list[float]:
    """Return logarithms of ratios on a host whose speed drifts, with an outlier."""
    drift = np.exp(np.cumsum(GENERATOR.normal(0, 0.02, count)))
    before = drift * np.exp(GENERATOR.normal(0, noise, count))
    after = drift * ratio * np.exp(GENERATOR.normal(0, noise, count))
    before[count // 2] *= 5
    return [float(value) for value in np.log(after / before)]


def test_drift_and_an_outlier_do_not_move_the_ratio() -> None:
    """Pairs share the drift, and the median of averages ignores the outlier."""
    ratio = estimate_ratio(draw_pairs(1.2, 40))
    assert ratio.estimate == pytest.approx(1.2, rel=0.05)
    assert ratio.low < 1.2 < ratio.high
    assert ratio.p < 0.001


def test_the_interval_covers_the_truth_as_often_as_it_says() -> None:
    """95 of 100, within the error of 400 tries."""
    ratios = [estimate_ratio(draw_pairs(1.1, 16)) for _ in range(400)]
    assert 0.92 < np.mean([r.low <= 1.1 <= r.high for r in ratios]) < 0.98


def test_equal_releases_have_uniform_p_values() -> None:
    """One in twenty is below 0.05."""
    p_values = np.array([estimate_ratio(draw_pairs(1.0, 12)).p for _ in range(400)])
    assert 0.02 < (p_values <= 0.05).mean() < 0.09


@given(st.lists(st.floats(-3, 3), min_size=1, max_size=20))
@settings(deadline=None)
def test_the_inverse_ratio_is_that_of_exchanged_releases(logs: list[float]) -> None:
    """With the same p-value, and an interval that contains the estimate."""
    one, other = estimate_ratio(logs), estimate_ratio([-value for value in logs])
    assert one.estimate * other.estimate == pytest.approx(1)
    assert one.p == pytest.approx(other.p)
    assert one.low == pytest.approx(1 / other.high)
    assert one.low <= one.estimate <= one.high


def test_the_smallest_p_value_of_few_pairs() -> None:
    """Two of all assignments of signs are as extreme as equal signs."""
    assert permute_signs(np.ones(6)) == 2 / 2**6
    assert permute_signs(np.zeros(6)) == 1
    assert 0 < permute_signs(np.arange(1.0, 31)) < 0.001


def test_large_differences_that_others_lack_take_few_pairs() -> None:
    """One of 33 others is as large: four pairs are certain, where their signs are not."""
    others = np.array([*GENERATOR.normal(0, 0.05, 32), -0.8])
    assert rate_rarity(np.array([0.5, 0.6, 0.7, 0.5]), others) == pytest.approx((2 / 34) ** 4)
    assert rate_rarity(np.array([0.5, 0.6, -0.7, 0.5]), others) == 1
    assert rate_rarity(np.array([0.5, 0.6, 0.0, 0.5]), others) == 1
    logs = [0.5, 0.45, 0.55, 0.5]
    assert estimate_ratio(logs).p == 2 / 2**4
    found = estimate_ratio(logs, others=others.tolist())
    assert found.p == pytest.approx(2 * (2 / 34) ** 4)


def test_equal_releases_are_seldom_rare() -> None:
    """One in twenty is at most 0.05, however heavy the tails of the noise are."""
    others = GENERATOR.standard_t(2, 33)
    p_values = np.array([rate_rarity(GENERATOR.standard_t(2, 4), others) for _ in range(1_000)])
    assert (p_values <= 0.05).mean() <= 0.05


def test_adjusted_p_values() -> None:
    """As in the paper: the largest p-value times count over rank, from the largest down."""
    assert adjust([0.01, 0.04, 0.03, 0.5]) == pytest.approx([0.04, 0.16 / 3, 0.16 / 3, 0.5])
    assert adjust([]) == []


def test_no_pairs_are_refused() -> None:
    """There is nothing to estimate."""
    with pytest.raises(ValueError, match="no pairs"):
        estimate_ratio([])
