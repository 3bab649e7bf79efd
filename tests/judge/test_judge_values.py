"""Values against goldens: what differs, in which order it is said, how far numbers may drift."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from conformance.judge.difference import Agreement
from conformance.judge.tolerance import Tolerance
from conformance.judge.values import compare_values
from tests.builders import f32, leaf, python, value

if TYPE_CHECKING:
    from conformance.model.value import Value

EXACT = Tolerance(rtol=0)


def _only(observed: Value, golden: Value, tolerance: Tolerance | None = None) -> str:
    (message,) = compare_values(observed, golden, tolerance).messages
    return message


@given(hnp.arrays(st.sampled_from([np.float32, np.int8, np.complex64, np.bool_]), (2, 3)))
def test_a_value_equals_itself(array: Any) -> None:
    """Comparison is reflexive, NaN included."""
    assert compare_values(value(array), value(array.copy())).agreement is Agreement.EQUAL


@given(hnp.arrays(np.float16, 4), hnp.arrays(np.float16, 4))
def test_exact_agreement_means_no_ulp(a: Any, b: Any) -> None:
    """With tolerance 0, two values agree exactly when they are 0 ULP apart."""
    found = compare_values(value(a), value(b), EXACT)
    assert found.agrees == all(d.max_ulp == 0 for d in found.differences)


@given(hnp.arrays(np.float32, 4), hnp.arrays(np.float32, 4))
def test_agreement_only_grows_with_tolerance(a: Any, b: Any) -> None:
    """A wider tolerance never disagrees where a narrower one agrees."""
    levels = [
        compare_values(value(a), value(b), Tolerance(rtol=r)).agreement for r in (0, 1e-6, 1e-2, 1)
    ]
    assert levels == sorted(levels, reverse=True)


def test_another_structure_is_the_only_difference() -> None:
    """Leaves are not compared then."""
    one, other = f32(1), replace(f32(2, 3), structure="[*]")
    assert _only(one, other) == "out has structure (*, ), golden [*]"


def test_missing_and_unexpected_leaves_are_named() -> None:
    """Paths identify leaves."""
    one = value(leaf(1.0, "out['a']"), structure="s")
    other = value(leaf(1.0, "out['b']"), structure="s")
    text = "out has 1 leaf, golden 1; missing out['b']; unexpected out['a']"
    assert _only(one, other) == text


@pytest.mark.parametrize(
    ("observed", "golden", "message"),
    [
        (leaf(1.0, kind="numpy"), leaf(1.0), "out kind numpy, golden array"),
        (leaf(np.ones(2)), leaf(np.ones(3)), "out shape (2,), golden (3,)"),
        (leaf(1.0), leaf(np.float32(1)), "out dtype float64, golden float32"),
        (leaf(1.0, weak_type=True), leaf(1.0), "out is weakly typed, golden strongly"),
        (
            leaf(1.0, sharding="single"),
            leaf(1.0, sharding="replicated[2]"),
            "out sharding single, golden replicated[2]",
        ),
        (
            leaf(1.0),
            leaf(1.0, memory_kind="pinned_host"),
            "out memory kind default, golden pinned_host",
        ),
        (python("a"), python("b"), "out is 'a', golden 'b'"),
        (python(1), python(True), "out dtype int, golden bool"),
        (leaf(3), leaf(4), "out 3 against golden 4, exact"),
        (leaf(True), leaf(False), "out True against golden False, exact"),
    ],
)
def test_each_aspect_has_a_message(observed: Any, golden: Any, message: str) -> None:
    """The path first, then both values."""
    assert _only(value(observed), value(golden)) == message
    assert not compare_values(value(observed), value(golden)).agrees


def test_an_unknown_sharding_agrees_with_any() -> None:
    """No sharding observed is no difference."""
    assert compare_values(value(leaf(1.0)), value(leaf(1.0, sharding="single"))).agrees


def test_all_differences_of_placement_are_listed() -> None:
    """A leaf may differ in weak type and in its numbers at once."""
    found = compare_values(value(leaf(1.0, weak_type=True)), value(leaf(2.0)))
    assert [d.aspect for d in found.differences] == ["weak type", "numbers"]


def test_the_worst_element_is_named() -> None:
    """The message counts, finds the worst and names both numbers, the distance and the limit."""
    golden = np.full((8, 16), 1.5, np.float32)
    seen = golden.copy()
    seen[4, 1], seen[0, 3], seen[7, 7] = 1.25, 1.4375, 1.53125
    found = compare_values(
        value(leaf(seen, "out['w']")), value(leaf(golden, "out['w']")), Tolerance(rtol=2e-5)
    )
    assert found.messages == (
        (
            "out['w'] 3 of 128 elements differ, worst at [4, 1]: "
            "1.25 against golden 1.5, 2097152 ulp, rtol 2e-05"
        ),
    )
    (number,) = found.differences
    assert (number.first, number.max_ulp, number.max_abs) == ((0, 3), 2097152, 0.25)
    assert number.max_rel == pytest.approx(1 / 6)


def test_the_last_bit_drifts() -> None:
    """A difference within the tolerance is counted, but agrees."""
    found = compare_values(f32(1, np.nextafter(np.float32(2), np.float32(3))), f32(1, 2))
    assert found.agreement is Agreement.WITHIN
    assert (found.differences[0].count, found.differences[0].max_ulp) == (1, 1)
    assert found.messages[0].startswith(
        "out 1 of 2 elements drifted within tolerance, worst at [1]"
    )


def test_tolerance_zero_is_exact() -> None:
    """The last bit is beyond a tolerance of 0."""
    assert not compare_values(
        f32(1, np.nextafter(np.float32(2), np.float32(3))), f32(1, 2), EXACT
    ).agrees


def test_signs_of_zero_are_one_ulp_apart() -> None:
    """-0.0 and +0.0 are within any tolerance except 0."""
    assert compare_values(f32(-0.0), f32(0.0)).agreement is Agreement.WITHIN
    assert compare_values(f32(-0.0), f32(0.0), EXACT).agreement is Agreement.BEYOND


def test_another_nan_payload_drifts() -> None:
    """NaN equals NaN for the tolerance, 0 included, but other bits are seen."""
    nans = np.array([0x7FC00000, 0x7FC00001], np.uint32).view(np.float32)
    found = compare_values(value(nans[:1]), value(nans[1:]), EXACT)
    assert found.agreement is Agreement.WITHIN


@pytest.mark.parametrize(
    ("seen", "golden"),
    [
        (np.inf, -np.inf),
        (np.inf, 3e38),
        (3e38, np.inf),
        (np.nan, 1.0),
        (1.0, np.nan),
        (np.inf, np.nan),
    ],
)
def test_infinity_and_nan_match_only_themselves(seen: float, golden: float) -> None:
    """No tolerance covers infinity or NaN."""
    for tolerance in (Tolerance(), Tolerance(rtol=1e9, atol=1e300), Tolerance(atol=np.inf)):
        assert not compare_values(f32(seen, 1), f32(golden, 1), tolerance).agrees


def test_an_infinity_does_not_hide_drift_of_other_elements() -> None:
    """Nor does it widen their tolerance."""
    assert compare_values(f32(np.inf, 1.000001), f32(np.inf, 1)).agrees
    assert not compare_values(f32(np.inf, 2), f32(np.inf, 1)).agrees


def test_noise_near_zero_is_scaled_by_large_neighbours() -> None:
    """An element near zero may have the rounding error of the leaf's largest element."""
    assert compare_values(f32(1e-7, 1.0), f32(0.0, 1.0)).agrees
    assert not compare_values(f32(1e-4, 1.0), f32(0.0, 1.0)).agrees


@pytest.mark.parametrize(
    "dtype",
    [ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2, ml_dtypes.float4_e2m1fn],
)
def test_narrow_floats_drift_by_one_ulp(dtype: Any) -> None:
    """One ULP is within the default of a narrow float, doubling is not."""
    raw = np.array([1.0], dtype)
    above = (raw.view(f"u{raw.dtype.itemsize}") + 1).astype(f"u{raw.dtype.itemsize}").view(dtype)
    assert compare_values(value(above), value(raw)).agreement is Agreement.WITHIN
    assert not compare_values(value(raw * np.array(2, dtype)), value(raw)).agrees


def test_complex_numbers_drift_by_component() -> None:
    """A large real part does not excuse a wrong imaginary part under a stated rtol."""
    one, other = np.array([1e6 + 1j], np.complex64), np.array([1e6 + 2j], np.complex64)
    found = compare_values(value(one), value(other), Tolerance(rtol=1e-3))
    assert found.differences[0].worst == (0,)
    assert found.agreement is Agreement.BEYOND


@pytest.mark.parametrize("dtype", [np.int64, np.uint64, np.bool_, ml_dtypes.int4])
def test_integers_are_exact_under_any_tolerance(dtype: Any) -> None:
    """Integers and bools have no tolerance."""
    one, other = np.array([0, 1], dtype), np.array([0, 0], dtype)
    found = compare_values(value(one), value(other), Tolerance(rtol=1, atol=9))
    assert found.messages[0].startswith("out 1 of 2 elements differ, worst at [1]: ")


def test_large_integers_are_not_rounded() -> None:
    """Two integers that float64 cannot tell apart differ."""
    assert not compare_values(value(np.array([2**63 - 1])), value(np.array([2**63 - 2]))).agrees


def test_keys_are_exact() -> None:
    """Key data that differ in one bit differ."""
    one, other = (
        replace(leaf(np.array(words, np.uint32)), kind="key", dtype="key<fry>", shape=())
        for words in ([0, 1], [0, 2])
    )
    text = "out 1 of 2 elements differ, worst at [1]: 1 against golden 2, exact"
    assert _only(value(one), value(other)) == text


def test_python_floats_have_the_tolerance_of_float64() -> None:
    """A Python float drifts like a float64."""
    assert compare_values(value(python(1.0 + 1e-13)), value(python(1.0))).agrees
    assert not compare_values(value(python(1.0 + 1e-11)), value(python(1.0))).agrees


def test_dates_and_text_arrays_are_compared_by_their_bytes() -> None:
    """NumPy arrays that are no numbers are compared, not refused."""
    one, other = (value(replace(leaf(np.array([text])), kind="numpy")) for text in ("a", "b"))
    assert not compare_values(one, other).agrees
