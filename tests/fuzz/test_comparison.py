"""Comparison of results, and error bounds."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.fuzz.batches import PerturbedRuns, ProgramResult
from conformance.fuzz.comparison import Kind, bound_elements, compare_results, compute_bounds
from conformance.model.outcome import Outcome
from conformance.model.value import Leaf


def result(*numbers: float, dtype: str = "float32", **more: object) -> ProgramResult:
    """Return a result with one vector."""
    data = np.array(numbers, dtype).tobytes()
    leaf = Leaf(path="", kind="array", dtype=dtype, shape=(len(numbers),), data=data, **more)  # type: ignore[arg-type]
    return ProgramResult(leaves=(leaf,))


def raised(error: str, message: str = "") -> ProgramResult:
    """Return a result that is an error."""
    return ProgramResult(outcome=Outcome.RAISED, error=error, message=message)


CRASHED = ProgramResult(outcome=Outcome.CRASHED, error="SIGSEGV")
HUNG = ProgramResult(outcome=Outcome.TIMED_OUT, error="timeout")
ONE = result(1, 2)


@pytest.mark.parametrize(
    ("a", "b", "kind"),
    [
        (ONE, CRASHED, Kind.CRASH),
        (HUNG, ONE, Kind.HANG),
        (ONE, raised("TypeError", "bad"), Kind.OUTCOME),
        (raised("TypeError", "bad"), raised("ValueError", "bad"), Kind.ERROR),
        (raised("TypeError", "bad"), raised("TypeError", "worse"), Kind.ERROR),
        (ONE, ProgramResult(leaves=()), Kind.STRUCTURE),
        (ONE, result(1, 2, 3), Kind.SHAPE),
        (ONE, result(1, 2, dtype="float16"), Kind.DTYPE),
        (ONE, result(1, math.nan), Kind.NAN),
        (result(1, math.inf), result(1, -math.inf), Kind.NAN),
        (ONE, result(1, 2.0000002), Kind.VALUE),
        (result(0.0), result(-0.0), Kind.VALUE),
        (result(1, 1e-40), result(1, 0), Kind.DENORMAL),
        (result(1, 1e-40), result(2, 0), Kind.VALUE),
        (result(1e-7, dtype="float16"), result(0, dtype="float16"), Kind.VALUE),
        (ONE, result(1, 2, weak_type=True), Kind.WEAK_TYPE),
        (ONE, result(1, 2, sharding="replicated[4]"), Kind.SHARDING),
    ],
)
def test_every_kind_of_difference_is_seen(a: ProgramResult, b: ProgramResult, kind: Kind) -> None:
    """In both directions; a result does not differ from itself."""
    for one, other in ((a, b), (b, a)):
        found = compare_results(one, other)
        assert found is not None
        assert found.kind is kind
        assert compare_results(one, one) is None


def test_modes_of_one_release_may_differ_by_the_rounding_of_one() -> None:
    """`cauchy.cdf(-inf)` is 0 without jit and 6e-9 with it; releases may not differ so."""
    runs = PerturbedRuns(wide=(result(0.0),) * 3, own=(result(0.0),) * 3)
    bounds = compute_bounds(runs, result(0.0))
    assert bounds is not None
    a, b = result(0.0), result(6e-9)
    assert compare_results(a, b, bounds, same_release=True) is None
    assert compare_results(a, b, bounds) is not None
    assert compare_results(a, result(6e-7), bounds, same_release=True) is not None


@pytest.mark.parametrize(
    "other", [result(1, 2, weak_type=True), result(1, 2, sharding="replicated[4]")]
)
def test_modes_of_one_release_may_differ_in_types_and_shardings(other: ProgramResult) -> None:
    """And in messages of errors."""
    assert compare_results(ONE, other, same_release=True) is None
    assert compare_results(result(1e-40), result(0), same_release=True) is None
    errors = raised("TypeError", "one"), raised("ValueError", "two")
    assert compare_results(*errors, same_release=True) is None


def test_messages_may_differ_in_few_words() -> None:
    """And in the spelling of specs, where a long message is cut; not in the type of the error."""
    one = "dim 3 of the result is not divisble by the axes (2,) with PartitionSpec('x', None), no"
    other = "dim 7 of the result is not divisible by the axes (4,) with P('x', None), no"
    assert compare_results(raised("ValueError", one), raised("ValueError", other)) is None
    assert compare_results(raised("ValueError", one), raised("TypeError", one)) is not None
    assert compare_results(raised("ValueError", one), raised("ValueError", "no")) is not None


def test_infinite_complex_numbers_are_alike() -> None:
    """Whichever of their parts is NaN; a finite one differs."""
    one, other, finite = (
        result(number, dtype="complex64")  # type: ignore[arg-type]
        for number in (complex(math.inf, 0), complex(math.inf, math.nan), complex(1, 0))
    )
    assert compare_results(one, other) is None
    assert compare_results(one, finite) is not None


def wide(*numbers: float) -> ProgramResult:
    """Return a result in 64 bits."""
    return result(*numbers, dtype="float64")


def perturbed(*runs: ProgramResult, own: tuple[ProgramResult, ...] = ()) -> PerturbedRuns:
    """Return runs in 64 bits, and others in the dtypes of the program."""
    return PerturbedRuns(wide=runs, own=own)


def test_a_difference_within_the_spread_of_perturbed_runs_is_none() -> None:
    """A well-conditioned element next to it has a small bound."""
    runs = perturbed(wide(1, 100), wide(1, 101), wide(1, 99.5))
    bounds = compute_bounds(runs, result(1, 100))
    assert bounds is not None
    assert compare_results(result(1, 100), result(1, 103), bounds) is None
    found = compare_results(result(1, 100), result(1.001, 100), bounds)
    assert found is not None
    assert found.kind is Kind.VALUE


def test_roundings_within_a_step_widen_a_bound() -> None:
    """Those of the runs in the dtypes of the program, but not their distance from the exact one."""
    runs = perturbed(wide(1e-9), wide(1e-9), own=(result(5e-8), result(4e-8)))
    bounds = compute_bounds(runs, result(5e-8))
    assert bounds is not None
    assert compare_results(result(5e-8), result(9e-9), bounds) is None
    runs = perturbed(wide(1.0), wide(1.0), own=(result(0.0), result(0.0)))
    bounds = compute_bounds(runs, result(0.0))
    assert bounds is not None
    assert compare_results(result(1.0), result(0.0), bounds) is not None


def test_where_perturbed_runs_disagree_about_nan_nothing_is_said() -> None:
    """Where all are NaN, a number differs."""
    runs = perturbed(wide(math.nan, math.nan), wide(1, math.nan))
    bounds = compute_bounds(runs, result(1, 1))
    assert compare_results(result(1, 1), result(math.nan, 1), bounds or ()) is None
    found = compare_results(result(1, math.nan), result(1, 1), bounds or ())
    assert found is not None
    assert found.kind is Kind.NAN


def test_integers_that_perturbed_runs_change_are_not_compared() -> None:
    """As the position of a maximum among nearly equal numbers."""
    runs = [result(3, 1, dtype="int32"), result(2, 1, dtype="int32")]
    bounds = compute_bounds(perturbed(*runs), runs[0])
    assert compare_results(runs[0], runs[1], bounds or ()) is None
    assert compare_results(runs[0], result(3, 2, dtype="int32"), bounds or ()) is not None


def test_runs_without_a_comparable_result_give_no_bound() -> None:
    """In 64 bits the program may fail."""
    assert compute_bounds(perturbed(wide(1, 2), raised("TypeError")), ONE) is None
    assert compute_bounds(perturbed(ProgramResult()), ONE) is None


@given(st.floats(-1e30, 1e30), st.sampled_from(["float16", "bfloat16", "float32"]))
def test_the_rounding_of_a_result_is_always_within_its_bound(number: float, dtype: str) -> None:
    """Also where it overflows."""
    exact = np.array([number])
    bound = bound_elements([exact, exact], dtype=dtype)
    with np.errstate(all="ignore"):
        rounded = exact.astype(getattr(ml_dtypes, dtype, None) or dtype).astype(np.float64)
        assert (np.abs(rounded - exact) <= bound.error).all() or not np.isfinite(bound.error).all()
