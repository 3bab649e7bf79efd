"""Comparison of two results of a program, with an error bound where their numbers differ. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import SequenceMatcher
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from conformance.fuzz.array_type import (
    count_bits,
    find_numpy_dtype,
    get_kind,
    get_limits,
    has_wide_exponent,
)
from conformance.model.outcome import Outcome

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from conformance.fuzz.batches import PerturbedRuns, ProgramResult
    from conformance.model.value import Leaf

SAFETY: Final = 16.0
"""Factor between the spread of perturbed runs and the error that a correct result may have."""
ROUNDINGS: Final = {8: 2.0, 16: 8.0, 32: 256.0, 64: 256.0}
"""Roundings of the result itself that a correct result may have, by the bits of its dtype. A
special function rounds within itself, too; narrow dtypes are computed in wider ones."""


SIMILAR: Final = 0.8
"""Share of equal words of two messages that say the same in other words."""
_NUMBER: Final = re.compile(r"\d+")


class Kind(StrEnum):
    """The kind of a difference, the most severe first."""

    CRASH = "crash"
    """Only one of them crashes, or both do where the process is the oracle."""
    HANG = "hang"
    """Only one of them exceeds its time limit, or both do where the process is the oracle."""
    OUTCOME = "outcome"
    """Only one of them raises an error."""
    ERROR = "error"
    """Both raise an error, of different types or with different messages."""
    STRUCTURE = "structure"
    """Another number of results, or arrays in place of scalars."""
    SHAPE = "shape"
    DTYPE = "dtype"
    NAN = "nan"
    """One is NaN or infinite where the other is not, or is infinite with another sign."""
    VALUE = "value"
    """Numbers differ by more than the error bound."""
    DENORMAL = "denormal"
    """Numbers differ by less than the smallest normal number: one of them is flushed to zero."""
    WEAK_TYPE = "weak type"
    SHARDING = "sharding"


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultDifference:
    """How two results differ.

    Attributes:
        kind: Kind of the difference.
        detail: The difference in a sentence, without positions and numbers of one program.
        example: An example with numbers.
        position: Position of the example in the flattened array, None if there is none.
    """

    kind: Kind
    detail: str
    example: str = ""
    position: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """Error bound of the elements of one leaf.

    Attributes:
        center: The element as computed in 64 bits.
        error: Largest absolute error of a correct result; infinite where nothing can be said,
            because perturbed runs disagree about NaN or infinity.
    """

    center: NDArray[Any]
    error: NDArray[Any]


def to_array(leaf: Leaf) -> NDArray[Any]:
    """Return the elements of a leaf, as an array of its own dtype."""
    return np.frombuffer(leaf.data, find_numpy_dtype(leaf.dtype)).reshape(leaf.shape)


def compare_results(
    a: ProgramResult, b: ProgramResult, bounds: Sequence[Bound] = (), *, same_release: bool = False
) -> ResultDifference | None:
    """Return the most severe difference of two results, None if there is none.

    Args:
        a: Result of a program.
        b: Result that it is compared with.
        bounds: Error bound of each leaf; without them numbers must be equal, bit by bit.
        same_release: Whether both are modes of one release, which may differ in weak types,
            shardings, messages, denormal numbers, and by the rounding of 1.
    """
    if a.outcome is not b.outcome:
        return _compare_outcomes(a, b)
    if a.outcome is not Outcome.OK:
        if same_release or (_name(a) == _name(b) and is_similar(a.signature, b.signature)):
            return None
        return ResultDifference(
            kind=Kind.ERROR, detail=f"{a.signature} became {b.signature}",
            example=f"{a.message} -> {b.message}",
        )  # fmt: skip
    if len(a.leaves) != len(b.leaves):
        detail = f"{len(a.leaves)} results became {len(b.leaves)}"
        return ResultDifference(kind=Kind.STRUCTURE, detail=detail)
    found = [
        difference
        for number, (one, other) in enumerate(zip(a.leaves, b.leaves, strict=True))
        if (
            difference := _compare_leaves(
                one, other, bounds[number] if bounds else None, same_release=same_release
            )
        )
    ]
    return min(found, key=lambda each: [*Kind].index(each.kind), default=None)


def is_similar(a: str, b: str) -> bool:
    """Return whether two texts differ in few words or in numbers only."""
    first, second = (_NUMBER.sub("0", text).split() for text in (a, b))
    return SequenceMatcher(None, first, second).ratio() >= SIMILAR


def _name(result: ProgramResult) -> str:
    return result.signature.partition(":")[0]


def _compare_outcomes(a: ProgramResult, b: ProgramResult) -> ResultDifference | None:
    outcomes = {a.outcome, b.outcome}
    kind = Kind.OUTCOME
    if Outcome.OUT_OF_MEMORY in outcomes or not all(each.observed for each in outcomes):
        return None  # this host has failed, not the release
    if Outcome.TIMED_OUT in outcomes:
        kind = Kind.HANG
    elif Outcome.CRASHED in outcomes:
        kind = Kind.CRASH
    names = [each.signature or "ok" for each in (a, b)]
    return ResultDifference(
        kind=kind, detail=" became ".join(names), example=a.message or b.message
    )


def _compare_leaves(
    a: Leaf, b: Leaf, bound: Bound | None, *, same_release: bool
) -> ResultDifference | None:
    if (a.kind == "python") != (b.kind == "python"):
        return ResultDifference(kind=Kind.STRUCTURE, detail=f"{a.kind} became {b.kind}")
    if a.shape != b.shape:
        return ResultDifference(kind=Kind.SHAPE, detail="shape", example=f"{a.shape} -> {b.shape}")
    if a.dtype != b.dtype:
        return ResultDifference(kind=Kind.DTYPE, detail=f"{a.dtype} became {b.dtype}")
    found = _compare_numbers(a, b, bound, same_release=same_release) if a.data != b.data else None
    if same_release and found and found.kind is Kind.DENORMAL:
        return None  # code for several elements at once flushes other numbers
    return found or (None if same_release else _compare_placement(a, b))


def _compare_placement(a: Leaf, b: Leaf) -> ResultDifference | None:
    if a.weak_type != b.weak_type:
        words = {True: "weak", False: "not weak"}
        detail = f"{words[a.weak_type]} became {words[b.weak_type]}"
        return ResultDifference(kind=Kind.WEAK_TYPE, detail=detail)
    if a.sharding != b.sharding:
        return ResultDifference(
            kind=Kind.SHARDING, detail="sharding", example=f"{a.sharding} -> {b.sharding}"
        )
    return None


def _compare_numbers(
    a: Leaf, b: Leaf, bound: Bound | None, *, same_release: bool
) -> ResultDifference | None:
    if a.kind in {"python", "key"}:
        return ResultDifference(
            kind=Kind.VALUE, detail=a.dtype, example=f"{a.data!r} -> {b.data!r}"
        )
    error = np.zeros(a.shape) if bound is None else bound.error
    if same_release and bound is not None and get_kind(a.dtype) in {"float", "complex"}:
        # Modes round differently within a step, e.g. where 1/2 is added to -1/2.
        error = np.maximum(error, get_limits(a.dtype).epsilon)
    return _compare_arrays(to_array(a), to_array(b), error, a.dtype)


def compare_with_reference(
    result: ProgramResult, reference: Sequence[Bound]
) -> ResultDifference | None:
    """Return how a result differs from its reference by more than the error bound.

    Denormal numbers may be flushed to zero, or not.

    Args:
        result: Result of a program that ended well.
        reference: Reference of each leaf.
    """
    for leaf, bound in zip(result.leaves, reference, strict=True):
        seen = to_array(leaf)
        found = _compare_arrays(bound.center, seen, bound.error, leaf.dtype)
        if found and found.kind is not Kind.DENORMAL:
            return found
    return None


def _compare_arrays(
    x: NDArray[Any], y: NDArray[Any], error: NDArray[Any], dtype: str
) -> ResultDifference | None:
    """Return how two arrays differ by more than an error.

    Args:
        x: Array of numbers.
        y: Array of the same shape that it is compared with.
        error: Largest absolute difference of each element; infinite where anything is right.
        dtype: Dtype of the result that they are, or that they are the reference of.
    """
    if get_kind(dtype) not in {"float", "complex"}:
        return _describe(Kind.VALUE, x, y, (x != y) & (error == 0), dtype)
    wide = np.complex128 if get_kind(dtype) == "complex" else np.float64
    with np.errstate(all="ignore"):
        x, y = x.astype(wide), y.astype(wide)
        equal = (x == y) | (np.isnan(x) & np.isnan(y))
        if wide is np.complex128:
            # Which part of an infinite number is NaN depends on how it is multiplied.
            equal |= ~np.isfinite(x) & ~np.isfinite(y)
        decided = np.isfinite(error)
        special = ~(np.isfinite(x) & np.isfinite(y)) & ~equal & decided
        if found := _describe(Kind.NAN, x, y, special, dtype):
            return found
        differing = ~equal & (np.abs(x - y) > error) & decided
        denormal = np.abs(x - y) < get_limits(dtype).smallest_normal * has_wide_exponent(dtype)
        # -0.0 and 0.0 are equal here, and yet another result. In a part of a complex number it
        # depends on how that is multiplied, too.
        signs = equal & (np.signbit(x.real) != np.signbit(y.real)) & ~np.isnan(x) & (error == 0)
        signs &= wide is np.float64
    return (
        _describe(Kind.VALUE, x, y, differing & ~denormal, dtype)
        or _describe(Kind.VALUE, x, y, signs, f"sign of zero, {dtype}")
        or _describe(Kind.DENORMAL, x, y, differing, "denormal numbers")
    )


def _describe(
    kind: Kind, x: NDArray[Any], y: NDArray[Any], differing: NDArray[Any], detail: str
) -> ResultDifference | None:
    if not differing.any():
        return None
    position = int(np.flatnonzero(differing)[0])
    count = f"{int(differing.sum())} of {differing.size} elements"
    example = f"{x.flat[position]} -> {y.flat[position]}, {count}"
    return ResultDifference(kind=kind, detail=detail, example=example, position=position)


def compute_bounds(runs: PerturbedRuns, like: ProgramResult) -> tuple[Bound, ...] | None:
    """Return the error bound of each leaf from perturbed runs.

    Each run perturbs the result of every step by up to its epsilon, as Monte Carlo arithmetic
    does (Parker 1997). The spread of the runs in 64 bits shows how ill-conditioned the program is,
    that of the runs in its own dtypes what is rounded within a step, e.g. in its derivative.

    Args:
        runs: Results of runs with different perturbations.
        like: The result in the dtypes of the program.

    Returns:
        The bounds, None if the runs have no comparable results.
    """
    every = (*runs.wide, *runs.own)
    if any(run.outcome is not Outcome.OK or len(run.leaves) != len(like.leaves) for run in every):
        return None
    bounds = []
    for number, leaf in enumerate(like.leaves):
        wide, own = ([run.leaves[number] for run in each] for each in runs)
        if leaf.kind in {"python", "key"} or any(one.shape != leaf.shape for one in (*wide, *own)):
            bounds.append(Bound(center=np.zeros(leaf.shape), error=np.zeros(leaf.shape)))
            continue
        arrays = ([to_array(one) for one in each] for each in (wide, own))
        bounds.append(bound_elements(*arrays, dtype=leaf.dtype))
    return tuple(bounds)


def bound_elements(
    arrays: Sequence[NDArray[Any]], own: Sequence[NDArray[Any]] = (), *, dtype: str
) -> Bound:
    """Return the error bound of the elements of an array.

    Args:
        arrays: The array in 64 bits, as several runs computed it; the first one is unperturbed.
        own: The same in the dtypes of the program. How far they are from the array in 64 bits does
            not count: it may be the fault that is looked for.
        dtype: Dtype in which a program computes it.
    """
    kind = get_kind(dtype)
    wide = np.complex128 if kind == "complex" else np.float64
    with np.errstate(all="ignore"):
        values = np.stack([array.astype(wide) for array in arrays])
        center = values[0]
        finite = np.isfinite(values)
        spread = np.max(np.abs(values - center), axis=0)
        for array in own[1:]:
            apart = np.abs(array.astype(wide) - own[0].astype(wide))
            spread = np.fmax(spread, np.where(np.isfinite(apart), apart, 0.0))
        if kind not in {"float", "complex"}:
            return Bound(center=center, error=np.where(spread > 0, np.inf, 0.0))
        limits = get_limits(dtype)
        rounding = ROUNDINGS[count_bits(dtype)] * limits.epsilon
        error = SAFETY * spread + rounding * np.abs(center) + 4 * limits.smallest
        stable = finite.all(axis=0)
        # All runs alike, e.g. all NaN: then each release must be alike, too.
        alike = np.all(np.isnan(values), axis=0) | np.all(values == center, axis=0)
        # Above the largest number of its dtype a correct result may be infinite or not.
        near = np.abs(center) * (1 + rounding) > limits.largest
        error = np.where(stable & ~near, error, np.where(alike & ~near, 0.0, np.inf))
    return Bound(center=center, error=error)
