"""Checks of laws on arrays, for cases with `given`.

A check raises `LawError` with the leaf that breaks the law. Values are compared like those of a
program with its reference: within a tolerance by dtype, NaN equals NaN, and float64, complex128
and int64 values of NumPy are rounded to the dtype that they are compared with.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from conformance.kit.tolerances import find_defaults

if TYPE_CHECKING:
    from collections.abc import Callable

_EXACT = ("float64", "complex128", "int64")
"""Dtypes in which NumPy computes, and which may differ from the dtype of a result."""


class LawError(AssertionError):
    """A law does not hold."""


class RejectedExample(Exception):  # noqa: N818 - not an error: another example is drawn
    """Raised by `assume`: the law says nothing about the example."""


def assume(condition: Any) -> None:
    """Drop the current example unless a condition holds; Hypothesis draws another one.

    Args:
        condition: A bool, or an array of one.
    """
    if not condition:
        raise RejectedExample


def check_same(
    actual: Any, expected: Any, *, rtol: float | None = None, atol: float | None = None
) -> None:
    """Check that two pytrees have the same structure, and arrays of the same shape and values.

    Args:
        actual: Result of the program.
        expected: Expected result.
        rtol: Relative tolerance; None is the default of the dtype, 0 is exact.
        atol: Absolute tolerance; None is 0 under a stated `rtol`, else scaled to the leaf.

    Raises:
        LawError: If they differ.
    """
    _compare(actual, expected, rtol, atol)


def check_idempotent(
    f: Callable[[Any], Any], x: Any, *, rtol: float | None = None, atol: float | None = None
) -> None:
    """Check that `f(f(x))` is `f(x)`.

    Args:
        f: Function of one argument.
        x: Its argument.
        rtol: See `check_same`.
        atol: See `check_same`.

    Raises:
        LawError: If they differ.
    """
    once = f(x)
    _compare(f(once), once, rtol, atol)


def check_inverse(
    f: Callable[[Any], Any],
    inverse: Callable[[Any], Any],
    x: Any,
    *,
    rtol: float | None = None,
    atol: float | None = None,
) -> None:
    """Check that `inverse(f(x))` is `x`.

    Args:
        f: Function of one argument.
        inverse: Function of its result.
        x: Argument of `f`.
        rtol: See `check_same`.
        atol: See `check_same`.

    Raises:
        LawError: If they differ.
    """
    _compare(inverse(f(x)), x, rtol, atol)


def check_linear(
    f: Callable[[Any], Any],
    x: Any,
    y: Any,
    *,
    a: float = 2.0,
    b: float = -3.0,
    rtol: float | None = None,
    atol: float | None = None,
) -> None:
    """Check that `f(a x + b y)` is `a f(x) + b f(y)`.

    Args:
        f: Function of one pytree of floating arrays, which returns another.
        x: First argument.
        y: Second argument, of the structure, shapes and dtypes of the first.
        a: Factor of the first argument.
        b: Factor of the second argument.
        rtol: See `check_same`.
        atol: See `check_same`; by default it is scaled to the terms of the sum, which may cancel.

    Raises:
        LawError: If they differ.
    """

    def combine(left: Any, right: Any) -> Any:
        # Rounded to the dtype of the terms: NumPy 1 returns float64 for a float32 of no axes.
        return (a * left + b * right).astype(left.dtype)

    x, y = jax.tree_util.tree_map(np.asarray, (x, y))
    left, right = f(x), f(y)
    terms = [
        max(abs(a) * _measure(one), abs(b) * _measure(other))
        for one, other in zip(*map(jax.tree_util.tree_leaves, (left, right)), strict=True)
    ]
    expected = jax.tree_util.tree_map(combine, left, right)
    _compare(f(jax.tree_util.tree_map(combine, x, y)), expected, rtol, atol, terms)


def _compare(
    actual: Any,
    expected: Any,
    rtol: float | None,
    atol: float | None,
    magnitudes: list[float] | None = None,
) -> None:
    """Compare pytrees; an absolute tolerance is scaled to a magnitude by leaf."""
    structures = [jax.tree_util.tree_structure(tree) for tree in (actual, expected)]
    if structures[0] != structures[1]:
        raise LawError(f"the structure is {structures[0]}, expected {structures[1]}")
    leaves, _ = jax.tree_util.tree_flatten_with_path(actual)
    others = jax.tree_util.tree_leaves(expected)
    for number, ((path, leaf), other) in enumerate(zip(leaves, others, strict=True)):
        left, right = _to_numpy(leaf), _to_numpy(other)
        name = f"out{jax.tree_util.keystr(path)}"
        magnitude = None if magnitudes is None else magnitudes[number]
        if problem := _find_difference(left, right, rtol, atol, magnitude):
            raise LawError(f"{name} {problem}")


def _to_numpy(leaf: Any) -> np.ndarray[Any, Any]:
    if isinstance(leaf, jax.Array) and jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        leaf = jax.random.key_data(leaf)
    return np.asarray(leaf)


def _find_difference(
    left: np.ndarray[Any, Any],
    right: np.ndarray[Any, Any],
    rtol: float | None,
    atol: float | None,
    magnitude: float | None,
) -> str:
    """Describe how an array differs from the expected one; empty if it does not."""
    if left.shape != right.shape:
        return f"has shape {left.shape}, expected {right.shape}"
    if left.dtype != right.dtype:
        if right.dtype.name not in _EXACT:
            return f"is {left.dtype.name}, expected {right.dtype.name}"
        right = right.astype(left.dtype)
    equal = left == right
    limits = ""
    # The dtypes of ml_dtypes are floating, too, and void to NumPy.
    if left.dtype.kind in "fcV":
        relative, absolute = _resolve_limits(right, rtol, atol, magnitude)
        wide = np.complex128 if left.dtype.kind == "c" else np.float64
        one, other = left.astype(wide), right.astype(wide)
        with np.errstate(invalid="ignore", over="ignore"):
            close = np.abs(one - other) <= absolute + relative * np.abs(other)
        equal |= (close & np.isfinite(one) & np.isfinite(other)) | (np.isnan(one) & np.isnan(other))
        limits = f", rtol {relative:g}" if relative or absolute else ", exact"
    if np.all(equal):
        return ""
    places = np.argwhere(~equal)
    first = tuple(int(index) for index in places[0])
    where = f" at [{', '.join(map(str, first))}]" if first else ""
    count = f"{len(places)} of {left.size} elements differ" if left.ndim else "differs"
    return f"{count}, first{where}: {left[first]!s} against {right[first]!s}{limits}"


def _resolve_limits(
    expected: np.ndarray[Any, Any],
    rtol: float | None,
    atol: float | None,
    magnitude: float | None,
) -> tuple[float, float]:
    relative, scale = find_defaults(expected.dtype, jax.numpy.finfo)
    if rtol is not None:
        relative, scale = rtol, 0.0
    largest = _measure(expected) if magnitude is None else magnitude
    return relative, scale * largest if atol is None else atol


def _measure(array: Any) -> float:
    """Return the largest finite magnitude of an array, 0 for none."""
    found = np.asarray(array)
    wide = np.abs(found.astype(np.complex128 if found.dtype.kind == "c" else np.float64))
    return float(wide.max(initial=0.0, where=np.isfinite(wide)))
