"""Distances between floating-point numbers, in units in the last place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np

from conformance.errors import ConformanceError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]

_UNSIGNED_FLOATS = frozenset({"float8_e8m0fnu"})
"""Formats without a sign bit: their bits are already in order."""


class UlpError(ConformanceError):
    """Two arrays between which no distance is defined."""


def is_float(dtype: np.dtype[Any]) -> bool:
    """Say whether a dtype is a real floating-point type, `ml_dtypes` included."""
    return dtype.kind == "f" or (dtype.kind == "V" and _finfo(dtype) is not None)


def bits_of(dtype: np.dtype[Any]) -> int:
    """Return the width of a floating-point type in bits: 4 for `float4_e2m1fn`, not 8."""
    info = _finfo(dtype)
    if info is None:
        raise UlpError(f"{dtype} is no floating-point type")
    return int(info.bits)


def parts(array: Array) -> Array:
    """Return a complex array as real ones with a last axis of two; others unchanged."""
    if array.dtype.kind != "c":
        return array
    real = np.dtype(f"f{array.dtype.itemsize // 2}")
    return np.ascontiguousarray(array).view(real).reshape((*array.shape, 2))


def raw_bits(array: Array) -> Array:
    """Return the bits of each element as an unsigned integer of its size."""
    # `ascontiguousarray` makes a scalar an array of one.
    return np.ascontiguousarray(array).view(f"u{array.dtype.itemsize}").reshape(array.shape)


def ulp_distance(observed: Array, golden: Array) -> NDArray[np.uint64]:
    """Return the distance of each pair of elements, in ULP.

    The bits are read as sign and magnitude and laid on one line of integers, on which neighbours
    are one apart: -0.0 and +0.0 are neighbours, and so are the largest number and infinity.

    Args:
        observed: Values, any floating or complex dtype.
        golden: Values of the same shape and dtype.

    Returns:
        Distances, of the shape of `parts(golden)`; NaN against NaN is 0 whatever the payload,
        NaN against a number is the farthest that the width allows.

    Raises:
        UlpError: If shape or dtype differ, or the dtype is not floating.
    """
    if observed.dtype != golden.dtype or observed.shape != golden.shape:
        raise UlpError(
            f"no ulp between {observed.dtype}{list(observed.shape)} and "
            f"{golden.dtype}{list(golden.shape)}; compare like with like"
        )
    left, right = parts(observed), parts(golden)
    a, b = _ordered(left), _ordered(right)
    distance = np.where(a > b, a - b, b - a)
    left_nan, right_nan = np.isnan(left), np.isnan(right)
    if left_nan.any() or right_nan.any():
        distance[left_nan & right_nan] = 0
        distance[left_nan ^ right_nan] = (1 << bits_of(left.dtype)) - 1
    return distance


def max_ulp(observed: Array, golden: Array) -> int:
    """Return the largest distance between two arrays, in ULP.

    Args:
        observed: Values from the cell, any inexact dtype.
        golden: Values of the same shape and dtype.

    Returns:
        Distance in units in the last place, complex numbers by component; NaN against NaN is 0,
        +0.0 against -0.0 is 1, and empty arrays are 0 apart.

    Raises:
        UlpError: If shape or dtype differ, or the dtype is not floating.
    """
    return int(np.max(ulp_distance(observed, golden), initial=0))


def _ordered(array: Array) -> NDArray[np.uint64]:
    bits = bits_of(array.dtype)
    raw = raw_bits(array).astype(np.uint64)
    if array.dtype.name in _UNSIGNED_FLOATS:
        return raw
    half = np.uint64(1 << (bits - 1))
    magnitude = raw & (half - np.uint64(1))
    # Where zero has no negative, the smallest negative number is zero's neighbour.
    below = half - np.uint64(0 if array.dtype.name.endswith("fnuz") else 1)
    return np.where(raw & half, below - magnitude, half + magnitude)


def _finfo(dtype: np.dtype[Any]) -> Any:
    try:
        return ml_dtypes.finfo(dtype)
    except (ValueError, TypeError, KeyError):
        return None
