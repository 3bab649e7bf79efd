"""Comparison of observed values with goldens (every property counts) and references (numbers)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from conformance.judge.difference import Agreement, Comparison, Difference, make_violation
from conformance.judge.tolerance import (
    Tolerance,
    compute_ulp_distance,
    is_float,
    split_complex,
    view_bits,
)
from conformance.model.case import find_ulp
from conformance.model.value import to_array, to_python
from conformance.wording import plural

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from conformance.judge.tolerance import Limits
    from conformance.model.case import Budget
    from conformance.model.value import Leaf, Value

    Array = NDArray[Any]


GOLDEN: Final = "golden"
REFERENCE: Final = "reference"
"""Names of the two kinds of expected values in messages."""
_MATHEMATICS = frozenset({"float64", "complex128", "int64"})
"""NumPy's own dtypes: a reference in one of them states numbers, not a dtype."""

_COMPLEX = {"float64": np.complex128}
"""Complex type that holds a real one; complex64 holds all narrower ones."""

_TEXT_DTYPES = ("str", "bytes", "void", "datetime64", "timedelta64")

_NUMBERS = frozenset({"bool", "int", "float", "complex"})


def compare_values(
    observed: Value, golden: Value, tolerance: Tolerance | None = None, *, word: str = GOLDEN
) -> Comparison:
    """Compare an observation with its golden: structure, placement and numbers.

    Args:
        observed: Observed value.
        golden: Recorded value.
        tolerance: Tolerance of the case; None for the defaults.
        word: Name of the golden in messages.

    Returns:
        The differences in the order structure, leaves, kind, shape, dtype, weak type, sharding,
        memory kind, numbers; a leaf of another kind, shape or dtype is not compared further. An
        unknown sharding agrees with any.
    """
    # The common case of a run: equal bytes need no arrays.
    if observed == golden:
        return Comparison()
    if observed.structure != golden.structure:
        text = f"out has structure {observed.structure}, {word} {golden.structure}"
        return Comparison(differences=(make_violation("out", "structure", text),))
    paths = _compare_paths(observed, golden, word, ordered=True)
    if paths is not None:
        return Comparison(differences=(paths,))
    stated = tolerance or Tolerance()
    pairs = zip(observed.leaves, golden.leaves, strict=True)
    differences = (d for o, g in pairs for d in _compare_golden_leaf(o, g, stated, word))
    return Comparison(differences=tuple(differences))


def compare_reference(
    observed: Value,
    reference: Value,
    rtol: float | None = None,
    atol: float | None = None,
    *,
    budgets: Sequence[Budget] = (),
    word: str = REFERENCE,
) -> Comparison:
    """Compare an observation with the reference of its case.

    Leaves are matched by path, so a tuple agrees with a list. NumPy float64, complex128 and int64
    are plain numbers: they are rounded to the observed dtype, which is not compared. Any other
    array dtype must be equal. Weak type, sharding and memory kind belong to goldens and facts,
    and are ignored. Python leaves are compared by value.

    Args:
        observed: Observed value.
        reference: Value of the reference.
        rtol: Relative tolerance of the case; None is the observed dtype's default, 0 is exact.
        atol: Absolute tolerance of the case.
        budgets: Tolerances in ULP that replace both; the first that matches a leaf applies.
        word: Name of the reference in messages.

    Returns:
        The differences; correctly rounded results have none.
    """
    paths = _compare_paths(observed, reference, word)
    if paths is not None:
        return Comparison(differences=(paths,))
    expected = {leaf.path: leaf for leaf in reference.leaves}
    stated = Tolerance(rtol=rtol, atol=atol)

    def select_tolerance(path: str) -> Tolerance:
        ulp = find_ulp(path, budgets)
        return stated if ulp is None else Tolerance(ulp=ulp)

    differences = (
        _compare_reference_leaf(leaf, expected[leaf.path], select_tolerance(leaf.path), word)
        for leaf in observed.leaves
    )
    return Comparison(differences=tuple(d for d in differences if d is not None))


def _compare_paths(
    observed: Value, expected: Value, word: str, *, ordered: bool = False
) -> Difference | None:
    got = [leaf.path for leaf in observed.leaves]
    wanted = [leaf.path for leaf in expected.leaves]
    # A golden also fixes the order of leaves, which users see as the order
    # of a dict or a tuple.
    if got == wanted or (not ordered and sorted(got) == sorted(wanted)):
        return None
    missing = [path for path in wanted if path not in got]
    extra = [path for path in got if path not in wanted]
    text = f"out has {plural(len(got), 'leaf', 'leaves')}, {word} {len(wanted)}"
    text += f"; missing {', '.join(missing[:5])}" if missing else ""
    text += f"; unexpected {', '.join(extra[:5])}" if extra else ""
    return make_violation("out", "leaves", text)


def _compare_golden_leaf(
    observed: Leaf, golden: Leaf, tolerance: Tolerance, word: str
) -> Iterator[Difference]:
    path = observed.path
    for aspect in ("kind", "shape", "dtype"):
        got, expected = getattr(observed, aspect), getattr(golden, aspect)
        # Each of them decides how the bytes are read, so no further comparison is meaningful.
        if got != expected:
            yield make_violation(path, aspect, f"{path} {aspect} {got}, {word} {expected}")
            return
    if observed.weak_type != golden.weak_type:
        words = {True: "weak", False: "strong"}
        one, other = words[observed.weak_type], words[golden.weak_type]
        text = f"{path} is {one}ly typed, {word} {other}ly"
        yield make_violation(path, "weak type", text)
    # Releases without a readable sharding record none, which is no change of placement.
    if observed.sharding != golden.sharding and observed.sharding and golden.sharding:
        text = f"{path} sharding {observed.sharding}, {word} {golden.sharding}"
        yield make_violation(path, "sharding", text)
    if observed.memory_kind != golden.memory_kind:
        got, expected = observed.memory_kind or "default", golden.memory_kind or "default"
        yield make_violation(path, "memory kind", f"{path} memory kind {got}, {word} {expected}")
    if observed.data != golden.data:
        number = _compare_elements(observed, golden, tolerance, word)
        if number is not None:
            yield number


def _compare_elements(
    observed: Leaf, golden: Leaf, tolerance: Tolerance, word: str
) -> Difference | None:
    if _is_text(observed):
        return _compare_text(observed, golden, word)
    arrays = to_array(observed), to_array(golden)
    return compare_numbers(observed.path, *arrays, tolerance, _select_label(word))


def _compare_reference_leaf(
    observed: Leaf, reference: Leaf, tolerance: Tolerance, word: str
) -> Difference | None:
    path = observed.path
    if _is_text(observed) or _is_text(reference):
        return _compare_text(observed, reference, word)
    if observed.shape != reference.shape:
        text = f"{word} of {path} has shape {reference.shape}, value {observed.shape}"
        return make_violation(path, "shape", text)
    if not _is_same_dtype(observed, reference):
        text = f"{path} dtype {observed.dtype}, {word} {reference.dtype}"
        return make_violation(path, "dtype", text)
    got, wanted = _unify_dtypes(to_array(observed), to_array(reference))
    return compare_numbers(path, got, wanted, tolerance, _select_label(word))


def _select_label(word: str) -> str:
    """Return the label of numbers; sentences about attempts and variants already name them."""
    return word if word in {GOLDEN, REFERENCE} else ""


def _is_same_dtype(observed: Leaf, reference: Leaf) -> bool:
    if observed.dtype == reference.dtype or reference.kind == "python":
        return True
    # A key of a PRNG is not a number, even where its bits are those of an integer array.
    if "key" in {observed.kind, reference.kind}:
        return False
    return reference.kind == "numpy" and reference.dtype in _MATHEMATICS


def _unify_dtypes(observed: Array, reference: Array) -> tuple[Array, Array]:
    """Return both arrays in one dtype if the observation is inexact, else unchanged."""
    inexact = observed.dtype.kind == "c" or is_float(observed.dtype)
    # Rounding a float reference to an integer type would hide a wrong fraction.
    if not inexact:
        return observed, reference
    # Casting the reference to a real type would drop its imaginary part, e.g. of an eigenvalue.
    if reference.dtype.kind == "c" and observed.dtype.kind != "c":
        observed = observed.astype(_COMPLEX.get(observed.dtype.name, np.complex64))
    # A reference beyond the range of the observed dtype becomes infinite, as the result must.
    with np.errstate(all="ignore"):
        return observed, reference.astype(observed.dtype)


def _is_text(leaf: Leaf) -> bool:
    if leaf.kind == "numpy":
        return leaf.dtype.startswith(_TEXT_DTYPES)
    return leaf.kind == "python" and leaf.dtype not in _NUMBERS


def _compare_text(observed: Leaf, expected: Leaf, word: str) -> Difference | None:
    got, wanted = _render_leaf(observed), _render_leaf(expected)
    if got == wanted and observed.kind == expected.kind:
        return None
    return make_violation(observed.path, "numbers", f"{observed.path} is {got}, {word} {wanted}")


def _render_leaf(leaf: Leaf) -> str:
    if leaf.kind == "python":
        return repr(to_python(leaf))
    return f"{leaf.dtype}{list(leaf.shape)} {leaf.data.hex()}"


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
        tolerance: Tolerance of the case.
        word: Name of the expected elements in the message, empty for none.

    Returns:
        The difference, or None when the bits are the same.
    """
    inexact = observed.dtype.kind == "c" or is_float(observed.dtype)
    if inexact and observed.dtype == expected.dtype:
        with np.errstate(all="ignore"):
            return _compare_floats(path, observed, expected, tolerance.resolve(expected), word)
    return _compare_exactly(path, _widen_ml_dtypes(observed), _widen_ml_dtypes(expected), word)


def _compare_floats(
    path: str, observed: Array, expected: Array, limits: Limits, word: str
) -> Difference | None:
    # By component: a complex result may be wrong in a small part next to a large one.
    left, right = split_complex(observed), split_complex(expected)
    # Bits, since == does not tell -0.0 from 0.0 and never equates NaNs.
    differs = view_bits(left) != view_bits(right)
    if not differs.any():
        return None
    ulps = compute_ulp_distance(left, right)
    left64, right64 = left.astype(np.float64), right.astype(np.float64)
    errors = _compute_errors(left64, right64)
    # NaN in the limit would make the limit of its element NaN, and every comparison False.
    allowed = limits.atol + limits.rtol * np.abs(np.where(np.isnan(right64), 0, right64))
    excess: Array
    if limits.exact or limits.ulp is not None:
        outside, excess = ulps > (limits.ulp or 0), ulps
    else:
        # An infinite expected number has an infinite limit, within which any number would lie.
        outside = ~(errors <= allowed) | (errors == np.inf)
        excess = errors - np.where(np.isfinite(allowed), allowed, 0)
    agreement = Agreement.BEYOND if outside.any() else Agreement.WITHIN
    counted = outside if agreement is Agreement.BEYOND else differs
    complex_ = observed.ndim != left.ndim
    # A complex element counts once, though both of its components may differ.
    flags = counted.any(axis=-1) if complex_ else counted
    first = _unravel(int(np.argmax(flags)), flags.shape)
    worst_part = _unravel(int(np.argmax(np.where(counted, excess, -np.inf))), left.shape)
    worst = worst_part[: observed.ndim]
    pair = _render_pair(observed[worst], expected[worst], word)
    return _make_difference(
        path, observed, f"{pair}, {int(ulps[worst_part])} ulp, {limits}",
        agreement=agreement, count=int(flags.sum()), first=first, worst=worst,
        max_ulp=int(np.max(ulps)), max_abs=float(np.max(errors)),
        max_rel=float(np.max(np.where(errors > 0, errors / np.abs(right64), 0))),
    )  # fmt: skip


def _compare_exactly(path: str, observed: Array, expected: Array, word: str) -> Difference | None:
    differs = np.asarray(observed != expected)
    if not differs.any():
        return None
    worst = _unravel(int(np.argmax(differs)), differs.shape)
    pair = _render_pair(observed[worst], expected[worst], word)
    max_abs, max_rel = _compute_integer_errors(observed[differs], expected[differs])
    return _make_difference(
        path, observed, f"{pair}, exact", agreement=Agreement.BEYOND,
        count=int(differs.sum()), first=worst, worst=worst, max_abs=max_abs, max_rel=max_rel,
    )  # fmt: skip


def _make_difference(
    path: str, observed: Array, pair: str, *, agreement: Agreement, count: int,
    worst: tuple[int, ...], **fields: Any,
) -> Difference:  # fmt: skip
    beyond = agreement is Agreement.BEYOND
    verb = "differ" if beyond else "drifted within tolerance"
    if observed.ndim == 0:
        message = f"{path} {pair}" if beyond else f"{path} {verb}: {pair}"
    else:
        elements = f"{count} of {observed.size} elements {verb}"
        message = f"{path} {elements}, worst at {list(worst)}: {pair}"
    return Difference(
        path=path, aspect="numbers", agreement=agreement, message=message, count=count,
        size=observed.size, worst=worst, **fields,
    )  # fmt: skip


def _compute_integer_errors(observed: Array, expected: Array) -> tuple[float, float]:
    """Return the largest absolute and relative error; infinite if float64 cannot hold the types."""
    # Object arrays and types of ml_dtypes have no exact conversion to float64.
    if not {observed.dtype.kind, expected.dtype.kind} <= set("biuf"):
        return np.inf, np.inf
    right = expected.astype(np.float64)
    with np.errstate(all="ignore"):
        errors = np.abs(observed.astype(np.float64) - right)
        return float(np.max(errors)), float(np.max(errors / np.abs(right)))


def _render_pair(observed: Any, expected: Any, word: str) -> str:
    return f"{observed} against {f'{word} ' if word else ''}{expected}"


def _compute_errors(left: NDArray[np.float64], right: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return absolute errors: 0 where both are NaN or the same infinity, inf where only one is."""
    errors = np.abs(left - right)
    same = (left == right) | (np.isnan(left) & np.isnan(right))
    return np.where(same, 0.0, np.where(np.isfinite(errors), errors, np.inf))


def _widen_ml_dtypes(array: Array) -> Array:
    """Return elements that NumPy can compare with any number: types of ml_dtypes widened."""
    if array.dtype.kind != "V":
        return array
    return array.astype(np.float64 if is_float(array.dtype) else np.int64)


def _unravel(flat: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(int(i) for i in np.unravel_index(flat, shape))
