"""Python as text."""

from __future__ import annotations

import ast
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.triage.repro.layout import (
    format_literal,
    join_blocks,
    render_assertion,
    render_comment,
    render_imports,
)

literals = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.binary(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(), inner, max_size=3)
        | st.tuples(inner)
        | st.tuples(inner, inner)
    ),
    max_leaves=8,
)


@given(literals)
def test_literal_evaluates_to_the_value(value: Any) -> None:
    """Also if it is nested."""
    assert ast.literal_eval(format_literal(value)) == value


@given(st.text())
def test_no_character_ends_a_comment(text: str) -> None:
    """Every line is a comment."""
    lines = render_comment(text)
    assert not ast.parse("\n".join(lines)).body
    assert all(line.startswith("# ") and line.isprintable() for line in lines)


@given(st.dictionaries(st.text(min_size=1), st.integers(), max_size=9))
def test_assertion_holds_only_for_its_value(value: dict[str, int]) -> None:
    """On one line or several."""
    text = "\n".join(render_assertion("told", value))
    exec(text, {"told": value})  # noqa: S102 - our own text
    with pytest.raises(AssertionError):
        exec(text, {"told": [value]})  # noqa: S102


def test_imports_are_sorted_and_merged() -> None:
    """Plain ones come first."""
    lines = ["from b import z, a", "import os", "from b import a, c", "import jax"]
    assert list(render_imports(lines)) == ["import jax", "import os", "from b import a, c, z"]


def test_definitions_have_two_empty_lines() -> None:
    """Constants have none between them."""
    assert join_blocks(["A = 1", "B = 2", "def f():\n    pass", "C = 3"]) == (
        "A = 1\nB = 2\n\n\ndef f():\n    pass\n\n\nC = 3"
    )
