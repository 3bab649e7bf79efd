"""Tolerances: how far an observed number may be from the expected one, by dtype.

Goldens hold on any host, so the defaults cover another instruction set or summation order, and
are far below what a wrong result shows:

| dtype | rtol | in ULP | scale |
|---|---|---|---|
| float64, complex128 | 1e-12 | 4,500 | 1e-14 |
| float32, complex64 | 2e-5 | 170 | 2e-6 |
| float16 | 8e-3 | 8 | 2e-3 |
| bfloat16 | 1.6e-2 | 2 | 8e-3 |
| 8 bits and fewer | one ULP at 1 (`eps`) | 1 | half of it |

An element is within tolerance when `|observed - golden| <= atol + rtol * |golden|`. Elements near
zero carry the rounding of their large neighbours, so an unstated `atol` is `scale` times the
largest finite magnitude of the golden leaf. A stated `rtol` makes an unstated `atol` 0: what a
case states is all there is, and 0 means exact. Integers, bools, keys and text are always exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import ml_dtypes
import numpy as np

from conformance.errors import ConformanceError
from conformance.kit import tolerances

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]


# Untyped: a call of `ml_dtypes.finfo` itself is an error to the mypy daemon, though not to mypy.
_FINFO: Any = ml_dtypes.finfo
_UNSIGNED = "fnu"
"""End of the names of formats without a sign bit, whose bits are already in order."""


class UlpError(ConformanceError):
    """No distance is defined between two arrays."""


def is_float(dtype: np.dtype[Any]) -> bool:
    """Say whether a dtype is a real floating-point type, `ml_dtypes` included."""
    # NumPy knows the types of ml_dtypes as void, and so are structured types.
    return dtype.kind == "f" or (dtype.kind == "V" and _get_finfo(dtype) is not None)


def count_bits(dtype: np.dtype[Any]) -> int:
    """Return the width of a floating-point type in bits: 4 for `float4_e2m1fn`, not 8."""
    info = _get_finfo(dtype)
    if info is None:
        raise UlpError(f"{dtype} is no floating-point type")
    return int(info.bits)


def split_complex(array: Array) -> Array:
    """Return a complex array as real ones with a last axis of two; others unchanged."""
    if array.dtype.kind != "c":
        return array
    real = np.dtype(f"f{array.dtype.itemsize // 2}")
    # A view, so that both components keep their bits: -0.0 and payloads of NaN count in ULP.
    return np.ascontiguousarray(array).view(real).reshape((*array.shape, 2))


def view_bits(array: Array) -> Array:
    """Return the bits of each element as an unsigned integer of its size."""
    # `ascontiguousarray` makes a scalar an array of one.
    return np.ascontiguousarray(array).view(f"u{array.dtype.itemsize}").reshape(array.shape)


def compute_ulp_distance(observed: Array, golden: Array) -> NDArray[np.uint64]:
    """Return the distance of each pair of elements, in ULP.

    The bits, a sign and a magnitude, are mapped to integers in the order of the numbers, so that
    neighbours differ by 1: -0.0 and +0.0 do, and so do the largest finite number and infinity.

    Args:
        observed: Values, any floating or complex dtype.
        golden: Values of the same shape and dtype.

    Returns:
        Distances, of the shape of `split_complex(golden)`. NaN against NaN is 0 for any payload,
        NaN against a number is the largest distance of the width.

    Raises:
        UlpError: If shape or dtype differ, or the dtype is not floating.
    """
    if observed.dtype != golden.dtype or observed.shape != golden.shape:
        raise UlpError(
            f"no ulp between {observed.dtype}{list(observed.shape)} and "
            f"{golden.dtype}{list(golden.shape)}; compare like with like"
        )
    left, right = split_complex(observed), split_complex(golden)
    a, b = _order_bits(left), _order_bits(right)
    # Unsigned integers: a difference below 0 would wrap around, so the larger comes first.
    distance = np.where(a > b, a - b, b - a)
    left_nan, right_nan = np.isnan(left), np.isnan(right)
    # NaN has a place in the order of bits, where a NaN and infinity would be close.
    if left_nan.any() or right_nan.any():
        distance[left_nan & right_nan] = 0
        distance[left_nan ^ right_nan] = (1 << count_bits(left.dtype)) - 1
    return distance


def _order_bits(array: Array) -> NDArray[np.uint64]:
    bits = count_bits(array.dtype)
    raw = view_bits(array).astype(np.uint64)
    if array.dtype.name.endswith(_UNSIGNED):
        return raw
    half = np.uint64(1 << (bits - 1))
    magnitude = raw & (half - np.uint64(1))
    # Where zero has no negative, the smallest negative number is zero's neighbour.
    below = half - np.uint64(0 if array.dtype.name.endswith("fnuz") else 1)
    return np.where(raw & half, below - magnitude, half + magnitude)


def _get_finfo(dtype: np.dtype[Any]) -> Any:
    try:
        return _FINFO(dtype)
    except (ValueError, TypeError, KeyError):
        return None


class StatesTolerance(Protocol):
    """An object with a tolerance."""

    @property
    def rtol(self) -> float | None:
        """Relative tolerance."""
        ...

    @property
    def atol(self) -> float | None:
        """Absolute tolerance."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Tolerance:
    """The tolerance of a case.

    Attributes:
        rtol: Relative to the golden element; None is the dtype's default, 0 is exact.
        atol: Absolute; None is 0 under a stated `rtol`, else the dtype's scale times the
            leaf's largest finite magnitude.
        ulp: In units in the last place, replaces both; None if not stated in ULP.
    """

    rtol: float | None = None
    atol: float | None = None
    ulp: int | None = None

    @classmethod
    def of(cls, case: StatesTolerance) -> Tolerance:
        """Return the tolerance of a case.

        Args:
            case: The case, from its file or from a run.
        """
        return cls(rtol=case.rtol, atol=case.atol)

    def resolve(self, golden: NDArray[Any]) -> Limits:
        """Return the limits that apply to one leaf.

        Args:
            golden: The leaf's elements, floating or complex.

        Returns:
            Both limits, resolved.
        """
        # A stated budget replaces the other limits, so that a tolerance cannot loosen it.
        if self.ulp is not None:
            return Limits(rtol=0.0, atol=0.0, ulp=self.ulp)
        rtol, scale = find_defaults(golden.dtype)
        if self.rtol is not None:
            rtol, scale = self.rtol, 0.0
        if self.atol is not None:
            return Limits(rtol=rtol, atol=self.atol)
        return Limits(rtol=rtol, atol=scale * _find_largest(golden))


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Resolved tolerance of one leaf: `|observed - golden| <= atol + rtol * |golden|`, or ULP.

    Attributes:
        rtol: Relative tolerance.
        atol: Absolute tolerance.
        ulp: Distance in ULP, replaces both; None if not stated in ULP.
    """

    rtol: float
    atol: float
    ulp: int | None = None

    @property
    def exact(self) -> bool:
        """Whether only equal numbers are within the limits."""
        return self.rtol == 0 and self.atol == 0 and not self.ulp

    def __str__(self) -> str:
        if self.ulp is not None:
            return f"at most {self.ulp} ulp"
        if self.exact:
            return "exact"
        return f"rtol {self.rtol:g}" + (f", atol {self.atol:.2g}" if self.atol != 0 else "")


def find_defaults(dtype: np.dtype[Any]) -> tuple[float, float]:
    """Return the default `(rtol, scale)` of a floating or complex dtype."""
    return tolerances.find_defaults(dtype, _FINFO)


def _find_largest(array: NDArray[Any]) -> float:
    # By component, in float64: the magnitude of a finite complex64 number may overflow.
    magnitudes = np.abs(split_complex(array).astype(np.float64))
    return float(magnitudes.max(initial=0.0, where=np.isfinite(magnitudes)))
