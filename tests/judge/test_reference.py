"""Values against references: mathematics states numbers, not dtypes or containers."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from conformance.judge.values import compare_reference
from conformance.model.case import Budget
from tests.builders import f32, f64, leaf, python, value


def _numpy(array: Any, path: str = "out") -> Any:
    return leaf(array, path, kind="numpy")


@given(hnp.arrays(np.float64, 5))
def test_the_correctly_rounded_result_conforms_exactly(mathematics: Any) -> None:
    """float32 of the reference conforms with tolerance 0, overflow included."""
    with np.errstate(all="ignore"):
        rounded = mathematics.astype(np.float32)
    found = compare_reference(value(rounded), value(_numpy(mathematics)), rtol=0, atol=0)
    assert found.agrees


def test_the_tolerance_is_of_the_observed_dtype() -> None:
    """A float64 result must be closer to the reference than a float32 result."""
    assert compare_reference(f32(1.00001), f64(1.0)).agrees
    assert not compare_reference(value(np.array([1.00001])), f64(1.0)).agrees


def test_placement_is_not_compared() -> None:
    """A sharded, weakly typed result conforms to a plain NumPy reference."""
    seen = leaf(1.0, sharding="tiles[0=0:1]", weak_type=True, memory_kind="pinned_host")
    assert compare_reference(value(seen), value(_numpy(1.0))).agrees


def test_containers_may_differ() -> None:
    """Leaves are matched by path, so a tuple agrees with a list."""
    seen = value(np.float32(1), np.float32(2), structure="(*, *)")
    reference = value(_numpy(1.0, "out[0]"), _numpy(2.0, "out[1]"), structure="[*, *]")
    assert compare_reference(seen, reference).agrees


def test_order_of_leaves_does_not_matter() -> None:
    """Paths decide which leaf is which."""
    seen = value(leaf(1.0, "out['a']"), leaf(2.0, "out['b']"))
    reference = value(_numpy(2.0, "out['b']"), _numpy(1.0, "out['a']"))
    assert compare_reference(seen, reference).agrees


def test_a_missing_leaf_is_named() -> None:
    """A missing result deviates."""
    found = compare_reference(f32(1), value(_numpy(1.0, "out[0]"), _numpy(1.0, "out[1]")))
    assert found.messages[0].startswith("out has 1 leaf, reference 2; missing out[0], out[1]")


def test_shapes_are_not_broadcast() -> None:
    """The message names both shapes."""
    found = compare_reference(f32(1, 2, 3, 4), f64(1, 2, 3, 4, 5))
    assert found.messages == ("reference of out has shape (5,), value (4,)",)


@pytest.mark.parametrize(
    ("seen", "reference"),
    [
        (leaf(np.int32(3)), python(3)),
        (leaf(np.int32(3)), _numpy(np.int64(3))),
        (leaf(np.int32(3)), _numpy(3.0)),
        (leaf(np.array(-3, ml_dtypes.int4)), _numpy(np.int64(-3))),
        (python(3), _numpy(np.int64(3))),
        (leaf(np.float32(0.1)), python(0.1)),
        (leaf(np.array(0.1, ml_dtypes.bfloat16)), _numpy(0.1)),
        (leaf(np.complex64(1j)), _numpy(1j)),
        (leaf(np.float32(1)), _numpy(1 + 0j)),
        (leaf(True), python(True)),
        (python("a"), python("a")),
        (python(None), python(None)),
    ],
)
def test_plain_numbers_are_compared_by_value(seen: Any, reference: Any) -> None:
    """Python numbers and NumPy's own dtypes have no meaningful dtype."""
    assert compare_reference(value(seen), value(reference)).agrees


@pytest.mark.parametrize(
    ("seen", "reference", "message"),
    [
        (leaf(np.int32(3)), python(4), "out 3 against reference 4, exact"),
        (leaf(np.int32(3)), _numpy(3.5), "out 3 against reference 3.5, exact"),
        (leaf(True), python(False), "out True against reference False, exact"),
        (python("a"), python("b"), "out is 'a', reference 'b'"),
        (python(None), python(0), "out is None, reference 0"),
        (leaf(np.float32(1)), _numpy(1 + 1j), "out (1+0j) against reference (1+1j)"),
        (leaf(1.0), leaf(np.float32(1)), "out dtype float64, reference float32"),
        (leaf(np.float32(1)), leaf(1.0), "out dtype float32, reference float64"),
        (leaf(1.0), _numpy(np.float32(1)), "out dtype float64, reference float32"),
    ],
)
def test_both_values_are_in_the_message(seen: Any, reference: Any, message: str) -> None:
    """In every kind of difference."""
    assert compare_reference(value(seen), value(reference)).messages[0].startswith(message)


def test_keys_are_only_compared_with_keys() -> None:
    """Integers are no reference for a key."""
    key = leaf(np.zeros(2, np.uint32), kind="key")
    assert not compare_reference(value(key), value(_numpy(np.zeros(2, np.int64)))).agrees


def test_rtol_zero_is_exact() -> None:
    """A stated 0 is not taken for unstated."""
    assert not compare_reference(
        f32(np.nextafter(np.float32(1), np.float32(2))), f64(1), rtol=0
    ).agrees


def test_atol_alone_keeps_the_default_rtol() -> None:
    """A stated atol admits noise around zero, and the default rtol still holds elsewhere."""
    assert compare_reference(f32(5e-4, 1.00001), f64(0, 1), atol=1e-3).agrees


def test_an_expected_nan_does_not_affect_other_elements() -> None:
    """Also if those have other bits."""
    seen, wanted = f32(np.nan, 1 + 1e-6, np.inf), f64(np.nan, 1.0, np.inf)
    assert compare_reference(seen, wanted).agrees
    assert not compare_reference(f32(0.0, 1 + 1e-6, np.inf), wanted).agrees


@given(
    st.floats(2.0**-99, 2.0**99, width=32),
    st.integers(0, 5),
    st.integers(0, 5),
)
def test_a_budget_counts_numbers_of_the_dtype(exact: float, off: int, allowed: int) -> None:
    """A distance up to the budget conforms, one more ULP deviates."""
    seen = np.float32(exact)
    for _ in range(off):
        seen = np.nextafter(seen, np.float32(np.inf), dtype=np.float32)
    budgets = (Budget(platform="cpu", ulp=allowed),)
    found = compare_reference(value(seen), value(_numpy(np.float64(exact))), budgets=budgets)
    assert found.agrees == (off <= allowed)


def test_the_first_matching_budget_of_a_leaf_applies() -> None:
    """A leaf without a budget has the tolerance of its dtype."""
    names = ("exp", "log", "sin")
    seen = value(*(leaf(np.float32(1.0000005), f"out[{name!r}]") for name in names))
    exact = value(*(_numpy(np.float64(1), f"out[{name!r}]") for name in names))
    budgets = (
        Budget(platform="cpu", ulp=1, leaves=("exp",)),
        Budget(platform="cpu", ulp=4, leaves=("exp", "log")),
    )
    found = compare_reference(seen, exact, budgets=budgets)
    beyond = [one for one in found.messages if "drifted" not in one]
    assert beyond == ["out['exp'] 1.0000004768371582 against reference 1.0, 4 ulp, at most 1 ulp"]
