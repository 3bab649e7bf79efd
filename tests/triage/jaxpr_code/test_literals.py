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
def test_a_number_is_the_same_number_of_its_type(value: float) -> None:
    """In few digits: `0.1` of f32 is not told in the digits of its double."""
    said = render_number(value if np.isfinite(value) else str(value), "float32")
    assert said is not None
    read = eval(said, {"jnp": np})  # noqa: S307 - that it is Python is the point
    assert np.float32(read).tobytes() == np.float32(value).tobytes() or np.isnan(value)


@pytest.mark.parametrize(
    ("value", "of", "said"),
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
def test_numbers(value: object, of: str, said: str | None) -> None:
    """Of every kind, and what is none."""
    assert render_number(value, of) == said


def test_dtypes_have_their_public_names() -> None:
    """Those of keys have none."""
    assert [render_dtype(name) for name in ("bool", "float8_e4m3fn", "key<fry>")] == [
        "jnp.bool_",
        "jnp.float8_e4m3fn",
        None,
    ]


@pytest.mark.parametrize(
    ("data", "said"),
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
def test_specs(data: object, said: str | None) -> None:
    """As lists of axes, and as dimensions with their axes."""
    assert render_spec(data) == said


def test_names_are_handed_out_once() -> None:
    """They hide nothing that the code imports, nor what is Python's own."""
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


def test_lists_are_tuples() -> None:
    """One of a single part keeps its comma."""
    assert render_plain([[1], [], ["x", None]]) == '((1,), (), ("x", None))'
