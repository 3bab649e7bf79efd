"""Plain data as Python literals, and unique names."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.triage.jaxpr_code.literals import (
    Names,
    make_identifier,
    render_dtype,
    render_number,
    render_plain,
    render_spec,
)


@given(st.floats(width=32))
def test_number_has_the_same_bits_in_its_dtype(value: float) -> None:
    """In few digits: `0.1` of f32 does not have the digits of a double."""
    text = render_number(value if np.isfinite(value) else str(value), "float32")
    assert text is not None
    read = eval(text, {"jnp": np})  # noqa: S307 - that it is Python is the point
    assert np.float32(read).tobytes() == np.float32(value).tobytes() or np.isnan(value)


@pytest.mark.parametrize(
    ("value", "of", "text"),
    [
        (0.10000000149011612, "float32", "0.1"),
        (2.0, "float32", "2.0"),
        (3, "int32", "3"),
        (True, "bool", "True"),
        ("-inf", "float32", "-jnp.inf"),
        (["complex", 1.0, -2.0], "complex64", "complex(1.0, -2.0)"),
        (1.0999999046325684, "bfloat16", "1.0999999046325684"),
        ("sha256:00", "float32", None),
        (None, "float32", None),
    ],
)
def test_numbers_are_python_literals(value: object, of: str, text: str | None) -> None:
    """Other values have none."""
    assert render_number(value, of) == text


def test_dtypes_have_public_names() -> None:
    """Except those of keys."""
    assert [render_dtype(name) for name in ("bool", "float8_e4m3fn", "key<fry>")] == [
        "jnp.bool_",
        "jnp.float8_e4m3fn",
        None,
    ]


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ([], "P()"),
        ([["x"], []], 'P("x", None)'),
        ([[], ["x", "y"]], 'P(None, ("x", "y"))'),
        ([[1, ["x"]]], 'P(None, "x")'),
        (["unconstrained"], "P(P.UNCONSTRAINED)"),
        ([["x"], ["unreduced", "y"]], None),
        ("other", None),
    ],
)
def test_partition_specs_of_all_releases(data: object, text: str | None) -> None:
    """Lists of axes, and dimensions with their axes."""
    assert render_spec(data) == text


def test_names_are_unique() -> None:
    """They hide neither imports nor builtins."""
    names = Names()
    assert [names.reserve(name) for name in ("x", "x", "x_2", "lax", "while", "sum", "2d")] == [
        "x",
        "x_2",
        "x_3",
        "lax_2",
        "while_",
        "sum_",
        "v2d",
    ]
    assert make_identifier("scatter-add") == "scatter_add"


def test_lists_become_tuples() -> None:
    """A tuple of one item keeps its comma."""
    assert render_plain([[1], [], ["x", None]]) == '((1,), (), ("x", None))'
