"""Values as expressions."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from conformance.judge.values import compare_reference
from conformance.model.value import Leaf, Value
from conformance.triage.new.reference import MAX_ELEMENTS, has_address, render_value

DTYPES = ("bool", "int32", "uint8", "float16", "float32", "float64", "complex64")


def leaf(array: np.ndarray[Any, Any], path: str = "out") -> Leaf:
    """Return a leaf of an array."""
    return Leaf(
        path=path, kind="array", dtype=array.dtype.name, shape=array.shape, data=array.tobytes()
    )


def lone(one: Leaf) -> Value:
    """Return a value of one leaf."""
    return Value(structure="*", leaves=(one,))


def python(value: object, path: str = "out") -> Leaf:
    """Return a leaf of a Python scalar."""
    return Leaf(path=path, kind="python", dtype=type(value).__name__, data=repr(value).encode())


@given(
    hnp.arrays(
        st.sampled_from(DTYPES),
        hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4),
        elements=None,
    )
)
def test_expression_has_the_same_bits(array: np.ndarray[Any, Any]) -> None:
    """Also NaN and infinities."""
    again = eval(render_value(lone(leaf(array))), {"np": np})  # noqa: S307 - our own
    assert (again.dtype, again.shape) == (array.dtype, array.shape)
    assert np.array_equal(again, array, equal_nan=array.dtype.kind in "fc")
    wanted = Leaf(
        path="out", kind="numpy", dtype=array.dtype.name, shape=array.shape, data=again.tobytes()
    )
    assert compare_reference(lone(leaf(array)), lone(wanted), rtol=0.0).agrees


@given(st.none() | st.booleans() | st.integers() | st.text(max_size=9) | st.floats())
def test_python_scalars_are_exact(value: object) -> None:
    """Evaluating the text gives the same `repr`."""
    again = eval(render_value(lone(python(value))))  # noqa: S307 - our own
    assert repr(again) == repr(value)


def test_tuples_become_lists() -> None:
    """References are compared by path."""
    leaves = (python(1, "out[0]"), python("a", "out[1]['k'][0]"), python(2, "out[1]['k'][1]"))
    assert render_value(Value(structure="", leaves=leaves)) == '[1, {"k": ["a", 2]}]'


def test_long_or_unnamed_values_have_no_text() -> None:
    """Long arrays of different elements, keys, and dtypes that NumPy does not have."""
    long = np.arange(MAX_ELEMENTS + 1, dtype=np.float32)
    assert render_value(lone(leaf(long))) == ""
    assert render_value(lone(leaf(0 * long))) == "np.full((65,), 0.0, np.float32)"
    narrow = Leaf(path="out", kind="array", dtype="bfloat16", shape=(1,), data=b"\0\0")
    assert render_value(lone(narrow)) == ""
    key = Leaf(path="out", kind="key", dtype="key<fry>", shape=(), data=b"\0" * 8)
    assert render_value(lone(key)) == ""
    assert render_value(Value(structure="", leaves=(python(1, "out.field"),))) == ""


def test_addresses_are_found() -> None:
    """They differ in each process."""
    assert has_address(lone(python("<object at 0x7f001122>")))
    assert not has_address(lone(python("0x1")))
    assert not has_address(lone(leaf(np.zeros(1, np.float32))))
