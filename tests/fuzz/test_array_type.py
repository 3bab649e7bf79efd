"""Types of arrays: promotion as jax documents it, and broadcasting as NumPy does it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.fuzz.array_type import DTYPES, NARROW, WIDE, ArrayType, broadcast, promote

WIDENED = st.sampled_from([dtype for dtype in DTYPES if dtype not in NARROW])
SHAPES = st.lists(st.sampled_from([0, 1, 2, 3]), max_size=3).map(tuple)


@given(WIDENED, WIDENED, st.booleans())
def test_promotion_is_symmetric_and_has_a_fixed_point(a: str, b: str, x64: bool) -> None:
    """The result of two dtypes promotes with either of them to itself."""
    both = promote(a, b, x64=x64)
    assert promote(b, a, x64=x64) == both
    if x64:
        assert promote(both, a, x64=True) == both
    elif a != b:
        assert both not in WIDE


@pytest.mark.parametrize(
    ("a", "b", "result"),
    [
        ("bool", "int8", "int8"),
        ("uint8", "int8", "int16"),
        ("uint32", "int32", "int32"),
        ("int32", "float16", "float16"),
        ("bfloat16", "float16", "float32"),
        ("float32", "complex64", "complex64"),
    ],
)
def test_promotion_follows_the_lattice_of_jax(a: str, b: str, result: str) -> None:
    """Without 64-bit types; from the table in its documentation."""
    assert promote(a, b, x64=False) == result


@given(SHAPES, SHAPES)
def test_shapes_broadcast_as_in_numpy(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    """None where NumPy refuses."""
    try:
        expected = np.broadcast_shapes(a, b)
    except ValueError:
        expected = None
    assert broadcast(a, b) == expected


def test_a_type_knows_its_kind_and_size() -> None:
    """The kind is that of the dtype, whatever its width."""
    type_ = ArrayType((2, 0, 3), "float8_e5m2")
    assert (type_.rank, type_.size, type_.kind) == (3, 0, "float")
    assert ArrayType((), "uint4").kind == "uint"
    assert ArrayType((), "complex64").size == 1
