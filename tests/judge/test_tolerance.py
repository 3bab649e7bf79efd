"""What tolerance applies, stated or by default."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from conformance.judge.tolerance import Tolerance, find_defaults


@pytest.mark.parametrize(
    ("dtype", "rtol"),
    [
        (np.float64, 1e-12),
        (np.complex128, 1e-12),
        (np.float32, 2e-5),
        (np.complex64, 2e-5),
        (ml_dtypes.bfloat16, 1.6e-2),
        (np.float16, 8e-3),
        (ml_dtypes.float8_e4m3fn, 0.125),
        (ml_dtypes.float8_e5m2, 0.25),
        (ml_dtypes.float4_e2m1fn, 0.5),
    ],
)
def test_default_rtol(dtype: type, rtol: float) -> None:
    """Each dtype has the default its table states."""
    assert find_defaults(np.dtype(dtype))[0] == rtol


def test_default_atol_follows_the_largest_finite_magnitude() -> None:
    """An element near zero carries the rounding of its large neighbours, never of infinity."""
    limits = Tolerance().resolve(np.array([1e-9, -200.0, np.inf, np.nan], np.float32))
    assert limits.atol == pytest.approx(4e-4)


def test_a_stated_rtol_makes_atol_zero() -> None:
    """Stated tolerances have no hidden part."""
    limits = Tolerance(rtol=1e-3).resolve(np.array([100.0]))
    assert (limits.rtol, limits.atol) == (1e-3, 0.0)


def test_zero_is_exact_not_unstated() -> None:
    """Rtol 0 is exact; atol 0 alone leaves the default rtol."""
    assert Tolerance(rtol=0).resolve(np.array([1.0])).exact
    assert str(Tolerance(atol=0).resolve(np.array([1.0]))) == "rtol 1e-12"


def test_ulp_replaces_rtol_and_atol() -> None:
    """A budget of 0 is exact."""
    limits = Tolerance(rtol=1e-3, ulp=2).resolve(np.array([1.0]))
    assert (str(limits), limits.exact) == ("at most 2 ulp", False)
    assert Tolerance(ulp=0).resolve(np.array([1.0])).exact


def test_limits_are_formatted_for_messages() -> None:
    """Messages name the applied limits."""
    texts = [
        str(Tolerance(rtol=r, atol=a).resolve(np.ones(1)))
        for r, a in [(0, None), (2e-5, None), (0, 0.5)]
    ]
    assert texts == ["exact", "rtol 2e-05", "rtol 0, atol 0.5"]
