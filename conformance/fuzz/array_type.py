"""Types of arrays in generated programs, and jax's type promotion."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Final, NamedTuple

import ml_dtypes
import numpy as np

FLOAT_BITS: Final = {
    "float8_e4m3fn": 8, "float8_e5m2": 8, "bfloat16": 16, "float16": 16, "float32": 32,
    "float64": 64,
}  # fmt: skip
"""Floating-point dtypes and their bits."""
NARROW: Final = ("float8_e4m3fn", "float8_e5m2", "int4", "uint4")
"""Dtypes of less than two bytes that jax promotes with no other dtype and few operations take."""
WIDE: Final = ("float64", "int64", "uint64", "complex128")
"""Dtypes that exist only where 64-bit types are enabled."""
DTYPES: Final = (
    "float32", "int32", "bool", "bfloat16", "float16", "complex64", "uint8", "int8", "uint32",
    "int16", "uint16", "float8_e4m3fn", "float8_e5m2", "int4", "uint4", *WIDE,
)  # fmt: skip
"""All dtypes, the simplest first: Hypothesis shrinks towards it."""

WIDE_EXPONENT: Final = 1e-30
"""Denormal numbers below it do not occur in use."""
PARTS: Final = {"complex64": "float32", "complex128": "float64"}
"""Dtype of the real part of a complex dtype."""
_NARROWED: Final = {
    "float64": "float32", "int64": "int32", "uint64": "uint32", "complex128": "complex64",
}  # fmt: skip
_ABOVE: Final = {
    "bool": ("uint8", "int8"),
    "uint8": ("uint16", "int16"),
    "uint16": ("uint32", "int32"),
    "uint32": ("uint64", "int64"),
    "int8": ("int16",),
    "int16": ("int32",),
    "int32": ("int64",),
    "uint64": ("bfloat16", "float16"),
    "int64": ("bfloat16", "float16"),
    "bfloat16": ("float32",),
    "float16": ("float32",),
    "float32": ("float64", "complex64"),
    "float64": ("complex128",),
    "complex64": ("complex128",),
    "complex128": (),
}
"""The lattice of jax's type promotion without weak types, as its documentation draws it."""


@dataclass(frozen=True, slots=True)
class ArrayType:
    """Shape and dtype of an array.

    Attributes:
        shape: Shape.
        dtype: Name of the dtype, as NumPy and `ml_dtypes` name it.
    """

    shape: tuple[int, ...]
    dtype: str

    @property
    def rank(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def kind(self) -> str:
        """`bool`, `int`, `uint`, `float` or `complex`."""
        return get_kind(self.dtype)

    def with_shape(self, *shape: int) -> ArrayType:
        """Return the type with another shape."""
        return replace(self, shape=shape)

    def with_dtype(self, dtype: str) -> ArrayType:
        """Return the type with another dtype."""
        return replace(self, dtype=dtype)


def get_kind(dtype: str) -> str:
    """Return `bool`, `int`, `uint`, `float` or `complex`."""
    return "float" if dtype in FLOAT_BITS else dtype.rstrip("0123456789")


class FloatLimits(NamedTuple):
    """Limits of a floating-point dtype.

    Attributes:
        epsilon: Distance between 1 and the next number.
        largest: Largest finite number.
        smallest_normal: Smallest normal number.
        smallest: Smallest denormal number.
    """

    epsilon: float
    largest: float
    smallest_normal: float
    smallest: float


def count_bits(dtype: str) -> int:
    """Return the bits of a floating-point dtype, or of a part of a complex one."""
    return FLOAT_BITS[PARTS.get(dtype, dtype)]


@cache
def get_limits(dtype: str) -> FloatLimits:
    """Return the limits of a floating-point dtype, or of the parts of a complex one."""
    info: Any = ml_dtypes.finfo(find_numpy_dtype(PARTS.get(dtype, dtype)))
    return FloatLimits(
        float(info.eps), float(info.max), float(info.smallest_normal),
        float(info.smallest_subnormal),
    )  # fmt: skip


def has_wide_exponent(dtype: str) -> bool:
    """Return whether denormal numbers of a floating-point dtype are too small to occur in use."""
    return get_limits(dtype).smallest_normal < WIDE_EXPONENT


def find_numpy_dtype(name: str) -> np.dtype[Any]:
    """Return the dtype of a name, also of those that NumPy lacks."""
    return np.dtype(getattr(ml_dtypes, name, None) or name)


def has_inexact(type_: ArrayType) -> bool:
    """Return whether a type is floating-point or complex."""
    return type_.kind in {"float", "complex"}


@cache
def _list_above(dtype: str) -> frozenset[str]:
    found = {dtype}
    for above in _ABOVE[dtype]:
        found |= _list_above(above)
    return frozenset(found)


def promote(a: str, b: str, *, x64: bool) -> str:
    """Return the dtype of the result of two arrays, as jax promotes them.

    Args:
        a: Dtype that is not in `NARROW` unless both are equal.
        b: The other dtype.
        x64: Whether 64-bit types are enabled; otherwise the result has 32 bits.
    """
    if a == b:
        return a
    common = _list_above(a) & _list_above(b)
    # The least upper bound is the one that all others are above. `uint64` and `int64` have none:
    # the result is jax's weak float.
    least = next((one for one in common if common <= _list_above(one)), "float64")
    return least if x64 else _NARROWED.get(least, least)


def broadcast(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...] | None:
    """Return the shape of two shapes broadcast, None if they cannot be."""
    rank = max(len(a), len(b))
    result = []
    for one, other in zip((1,) * (rank - len(a)) + a, (1,) * (rank - len(b)) + b, strict=True):
        if one != other and 1 not in {one, other}:
            return None
        result.append(other if one == 1 else one)
    return tuple(result)
