"""Exponents of growth: recovered from noisy measurements, with a constant."""

from __future__ import annotations

import numpy as np
import pytest

from conformance.bench.growth import compare_exponents, fit_exponent


@pytest.mark.parametrize("exponent", [0.5, 1.0, 2.0, 3.0])
@pytest.mark.parametrize("constant", [0.0, 5.0])
def test_the_exponent_of_a_power_law_is_found(exponent: float, constant: float) -> None:
    """Also behind a constant that is five times the smallest measurement."""
    generator = np.random.default_rng(3)
    seconds = {
        n: (constant + (n / 10) ** exponent) * np.exp(generator.normal(0, 0.01, 5))
        for n in (10, 20, 40, 80)
    }
    found = fit_exponent({n: values.tolist() for n, values in seconds.items()})
    assert found == pytest.approx(exponent, abs=0.35)


def test_what_does_not_grow_has_the_exponent_0() -> None:
    """Noise alone has no growth."""
    found = fit_exponent({n: [1.0, 1.05, 0.97] for n in (1, 2, 4, 8)})
    assert found == 0


def test_other_load_of_the_host_hides_no_growth() -> None:
    """It makes most measurements longer, and those of both releases in a round alike."""
    generator = np.random.default_rng(4)
    seconds = {n: (50 + n) * np.exp(abs(generator.normal(0, 0.4, 12))) for n in (16, 32, 64, 128)}
    logs = {n: np.log((50 + n**2 / 16) / (50 + n)) + generator.normal(0, 0.05, 12) for n in seconds}
    as_lists = [{n: values.tolist() for n, values in side.items()} for side in (seconds, logs)]
    found = compare_exponents(*as_lists)
    assert found.difference == pytest.approx(1, abs=0.1)
    assert 0.8 < found.low < found.high < 1.2


def test_equal_growth_has_no_difference() -> None:
    """A release that is twice as slow at every size."""
    generator = np.random.default_rng(5)
    seconds = {n: (50 + n) * np.exp(abs(generator.normal(0, 0.4, 12))) for n in (16, 32, 64, 128)}
    logs = {n: generator.normal(np.log(2), 0.05, 12).tolist() for n in seconds}
    found = compare_exponents({n: values.tolist() for n, values in seconds.items()}, logs)
    assert abs(found.difference) < 0.1
    assert -0.1 < found.low < found.high < 0.1


def test_the_interval_of_equal_growth_contains_0() -> None:
    """In about 95 of 100 draws, as an interval of 95 % does."""
    generator = np.random.default_rng(6)
    seconds = {n: [50.0 + n] * 12 for n in (16, 32, 64, 128)}
    found = [
        compare_exponents(
            seconds, {n: generator.normal(np.log(2), 0.05, 12).tolist() for n in seconds}
        )
        for _ in range(200)
    ]
    assert sum(one.low <= 0 <= one.high for one in found) >= 180


def test_two_sizes_are_refused() -> None:
    """Every exponent fits them."""
    with pytest.raises(ValueError, match="2 sizes"):
        fit_exponent({1: [1.0], 2: [2.0]})
