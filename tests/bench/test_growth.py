"""Exponents of growth: recovered from noisy measurements, with a constant."""

from __future__ import annotations

import numpy as np
import pytest

from conformance.bench.growth import fit_exponent


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
    assert found.estimate == pytest.approx(exponent, abs=0.35)
    assert found.low <= found.estimate <= found.high


def test_what_does_not_grow_has_the_exponent_0() -> None:
    """Noise alone has no growth."""
    found = fit_exponent({n: [1.0, 1.05, 0.97] for n in (1, 2, 4, 8)})
    assert found.estimate == 0


def test_other_load_of_the_host_hides_no_growth() -> None:
    """It slows half of the measurements by up to a factor of three, and those of any size."""
    generator = np.random.default_rng(4)
    seconds = {
        n: (
            n**2 * np.exp(abs(generator.normal(0, 0.5, 12)) * (generator.random(12) < 0.5))
        ).tolist()
        for n in (10, 20, 40, 80)
    }
    found = fit_exponent(seconds)
    assert found.estimate == pytest.approx(2, abs=0.1)
    assert found.high - found.low < 0.4


def test_two_sizes_are_refused() -> None:
    """Every exponent fits them."""
    with pytest.raises(ValueError, match="2 sizes"):
        fit_exponent({1: [1.0], 2: [2.0]})
