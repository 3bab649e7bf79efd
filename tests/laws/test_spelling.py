"""Examples as Python code."""

from __future__ import annotations

from typing import Any

import ml_dtypes  # noqa: F401 - registers the names of its dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from conformance.laws.spelling import spell_example, spell_value

ARRAYS = npst.arrays(
    npst.integer_dtypes(endianness="=")
    | npst.floating_dtypes(endianness="=", sizes=(16, 32, 64))
    | npst.complex_number_dtypes(endianness="=", sizes=(64, 128))
    | st.just(bool),
    npst.array_shapes(min_dims=0, min_side=0, max_side=3),
)
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | ARRAYS,
    lambda inner: st.lists(inner) | st.tuples(inner) | st.dictionaries(st.text(), inner),
)


@given(PLAIN)
def test_the_code_has_the_value(value: Any) -> None:
    """Every bit, apart from payloads of NaN."""
    spelled = eval(spell_value(value), {"np": np})  # noqa: S307 - code of the function itself
    np.testing.assert_equal(spelled, value)


@pytest.mark.parametrize(
    ("example", "code"),
    [
        (
            {"x": np.array([0, np.nan, 1.1], np.float32), "n": 3},
            'x = np.array([0.0, np.nan, 1.1], "float32"); n = 3',
        ),
        ({"x": np.zeros((0, 2), np.int8)}, 'x = np.zeros((0, 2), "int8")'),
        ({"x": np.float16(-np.inf)}, 'x = np.array(-np.inf, "float16")[()]'),
        ({"x": np.array([2], "bfloat16")}, 'x = np.array([2], "bfloat16")'),
        ({"x": (1 + 2j, -0.0)}, "x = (complex(1.0, 2.0), -0.0)"),
    ],
)
def test_the_code_is_equal_on_every_release_of_numpy(example: dict[str, Any], code: str) -> None:
    """NumPy's own representation differs."""
    assert spell_example(example) == code
