"""Distances in ULP, for every width."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from conformance.judge.tolerance import UlpError, compute_ulp_distance, count_bits
from conformance.model.value import dtype_of

FLOATS = [
    "float16",
    "float32",
    "float64",
    *(n for n in dir(ml_dtypes) if n.startswith(("float", "bfloat")) and n != "finfo"),
]


@pytest.mark.parametrize("name", FLOATS)
def test_neighbours_are_one_apart(name: str) -> None:
    """The numbers of a format, in order, are one ULP from the next, zeros included."""
    dtype = dtype_of(name)
    spare = max(count_bits(dtype) - 10, 0)  # wide formats are sampled by their ten highest bits
    raw = np.arange(1 << (count_bits(dtype) - spare), dtype=np.uint64) << np.uint64(spare)
    numbers = raw.astype(f"u{dtype.itemsize}").view(dtype)
    numbers = numbers[np.isfinite(numbers)]
    wide = numbers.astype(np.float64)
    numbers = numbers[np.lexsort((~np.signbit(wide), wide))]
    gaps = compute_ulp_distance(numbers[:-1], numbers[1:])
    assert set(gaps.tolist()) <= {1, 1 << spare}


def _max_ulp(observed: Any, golden: Any) -> int:
    return int(np.max(compute_ulp_distance(observed, golden), initial=0))


@given(hnp.arrays(np.float32, 8), hnp.arrays(np.float32, 8))
def test_distance_is_symmetric_and_zero_to_itself(a: Any, b: Any) -> None:
    """The distance is a metric on bits."""
    assert _max_ulp(a, b) == _max_ulp(b, a)
    assert _max_ulp(a, a) == 0


@given(st.floats(-(2.0**100), 2.0**100, width=32), st.integers(0, 50))
def test_stepping_n_times_is_n_ulp(start: float, steps: int) -> None:
    """`nextafter` n times away from zero lies n ULP away."""
    begin = np.array([start], np.float32)
    end = begin
    for _ in range(steps):
        end = np.nextafter(end, np.copysign(np.float32(np.inf), begin))
    assert _max_ulp(begin, end) == steps


def test_zeros_of_both_signs_are_one_apart() -> None:
    """-0.0 and +0.0 are neighbours."""
    assert _max_ulp(np.array([-0.0]), np.array([0.0])) == 1


def test_nan_equals_nan_with_any_payload() -> None:
    """Payload and sign of NaN are ignored."""
    nans = np.array([0x7FC00000, 0xFFC00001], np.uint32).view(np.float32)
    assert _max_ulp(nans[:1], nans[1:]) == 0


def test_nan_is_farthest_from_numbers() -> None:
    """NaN against a number is the most the width allows."""
    assert _max_ulp(np.array([np.nan], np.float16), np.array([1], np.float16)) == 2**16 - 1


def test_infinity_follows_the_largest_number() -> None:
    """Infinity is one ULP past the largest number, and far from its opposite."""
    largest = np.array([np.finfo(np.float64).max])
    assert _max_ulp(largest, np.array([np.inf])) == 1
    assert _max_ulp(np.array([-np.inf]), np.array([np.inf])) > 2**63


def test_complex_numbers_are_compared_by_component() -> None:
    """The farther component counts."""
    one = np.array([1 + 1j], np.complex64)
    other = np.array([1 + np.nextafter(np.float32(1), np.float32(2)) * 1j], np.complex64)
    assert _max_ulp(one, other) == 1


def test_empty_arrays_have_distance_zero() -> None:
    """There is no element to differ."""
    assert _max_ulp(np.empty((0, 3)), np.empty((0, 3))) == 0


@pytest.mark.parametrize("other", [np.zeros(3), np.zeros(2, np.float32), np.zeros(2, int)])
def test_another_shape_or_dtype_is_an_error(other: Any) -> None:
    """The message names both."""
    with pytest.raises(UlpError, match=r"no ulp between float64\[2\] and"):
        _max_ulp(np.zeros(2), other)


def test_integers_have_no_ulp() -> None:
    """Two integer arrays are refused, not measured."""
    with pytest.raises(UlpError, match="int64 is no floating-point type"):
        _max_ulp(np.zeros(2, np.int64), np.zeros(2, np.int64))
