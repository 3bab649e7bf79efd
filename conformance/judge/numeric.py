"""Numbers of one leaf against those expected: how many differ, where, and how far."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from conformance.judge.comparison import Agreement, Difference
from conformance.judge.ulp import is_float, parts, raw_bits, ulp_distance

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from conformance.judge.tolerance import Limits, Tolerance

    Array = NDArray[Any]


def compare_numbers(
    path: str, observed: Array, expected: Array, tolerance: Tolerance, word: str = ""
) -> Difference | None:
    """Compare the elements of two arrays of the same shape.

    Floating and complex arrays of one dtype are compared within the tolerance, complex ones by
    component; anything else is compared exactly, by value.

    Args:
        path: Path of the leaf, for the message.
        observed: Elements observed.
        expected: Elements of the golden or the reference.
        tolerance: What the case states.
        word: What the expected elements are called in the message, empty for nothing.

    Returns:
        The difference, or None when the bits are the same.
    """
    inexact = observed.dtype.kind == "c" or is_float(observed.dtype)
    if inexact and observed.dtype == expected.dtype:
        with np.errstate(all="ignore"):
            return _compare_floats(path, observed, expected, tolerance.limits(expected), word)
    return _compare_exactly(path, _plain(observed), _plain(expected), word)


def _compare_floats(
    path: str, observed: Array, expected: Array, limits: Limits, word: str
) -> Difference | None:
    left, right = parts(observed), parts(expected)
    differs = raw_bits(left) != raw_bits(right)
    if not differs.any():
        return None
    ulps = ulp_distance(left, right)
    left64, right64 = left.astype(np.float64), right.astype(np.float64)
    errors = _errors(left64, right64)
    allowed = limits.atol + limits.rtol * np.abs(np.where(np.isnan(right64), 0, right64))
    excess: Array
    if limits.exact or limits.ulp is not None:
        outside, excess = ulps > (limits.ulp or 0), ulps
    else:  # infinite limits would let an infinity pass for a number
        outside = ~(errors <= allowed) | (errors == np.inf)
        excess = errors - np.where(np.isfinite(allowed), allowed, 0)
    agreement = Agreement.BEYOND if outside.any() else Agreement.WITHIN
    counted = outside if agreement is Agreement.BEYOND else differs
    complex_ = observed.ndim != left.ndim
    flags = counted.any(axis=-1) if complex_ else counted
    first = _index(int(np.argmax(flags)), flags.shape)
    worst_part = _index(int(np.argmax(np.where(counted, excess, -np.inf))), left.shape)
    worst = worst_part[: observed.ndim]
    count, ulp = int(flags.sum()), int(ulps[worst_part])
    pair = f"{_against(observed[worst], expected[worst], word)}, {ulp} ulp, {limits}"
    return Difference(
        path=path,
        aspect="numbers",
        agreement=agreement,
        message=_sentence(path, pair, agreement=agreement, count=count, worst=worst, of=observed),
        count=count,
        size=observed.size,
        first=first,
        worst=worst,
        max_ulp=int(np.max(ulps)),
        max_abs=float(np.max(errors)),
        max_rel=float(np.max(np.where(errors > 0, errors / np.abs(right64), 0))),
    )


def _compare_exactly(path: str, observed: Array, expected: Array, word: str) -> Difference | None:
    differs = np.asarray(observed != expected)
    if not differs.any():
        return None
    worst = _index(int(np.argmax(differs)), differs.shape)
    count = int(differs.sum())
    pair = f"{_against(observed[worst], expected[worst], word)}, exact"
    largest, relative = _integer_errors(observed[differs], expected[differs])
    return Difference(
        path=path,
        aspect="numbers",
        agreement=Agreement.BEYOND,
        message=_sentence(
            path, pair, agreement=Agreement.BEYOND, count=count, worst=worst, of=observed
        ),
        count=count,
        size=observed.size,
        first=worst,
        worst=worst,
        max_abs=largest,
        max_rel=relative,
    )


def _integer_errors(observed: Array, expected: Array) -> tuple[float, float]:
    """Return largest absolute and relative error; infinite for what float64 cannot hold."""
    if not {observed.dtype.kind, expected.dtype.kind} <= set("biuf"):
        return np.inf, np.inf
    right = expected.astype(np.float64)
    with np.errstate(all="ignore"):
        errors = np.abs(observed.astype(np.float64) - right)
        return float(np.max(errors)), float(np.max(errors / np.abs(right)))


def _against(observed: Any, expected: Any, word: str) -> str:
    return f"{observed} against {f'{word} ' if word else ''}{expected}"


def _sentence(
    path: str, pair: str, *, agreement: Agreement, count: int, worst: tuple[int, ...], of: Array
) -> str:
    verb = "differ" if agreement is Agreement.BEYOND else "drifted within tolerance"
    if of.ndim == 0:
        return f"{path} {pair}" if agreement is Agreement.BEYOND else f"{path} {verb}: {pair}"
    return f"{path} {count} of {of.size} elements {verb}, worst at {list(worst)}: {pair}"


def _errors(left: NDArray[np.float64], right: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return absolute errors: 0 where both are NaN or the same infinity, inf where one is."""
    errors = np.abs(left - right)
    same = (left == right) | (np.isnan(left) & np.isnan(right))
    return np.where(same, 0.0, np.where(np.isfinite(errors), errors, np.inf))


def _plain(array: Array) -> Array:
    """Return elements NumPy can compare with any other number: narrow integers widened."""
    if array.dtype.kind != "V":
        return array
    return array.astype(np.float64 if is_float(array.dtype) else np.int64)


def _index(flat: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(int(i) for i in np.unravel_index(flat, shape))
