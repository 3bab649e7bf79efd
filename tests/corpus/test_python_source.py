"""Names of modules, and literals."""

from __future__ import annotations

import ast
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.corpus.python_source import STANDARD_LIBRARY, render_string_literal


def test_the_standard_library_is_that_of_all_pythons() -> None:
    """A module that a later Python removed is not a missing package."""
    assert sys.stdlib_module_names < STANDARD_LIBRARY
    assert {"distutils", "imp", "cgi", "binhex"} <= STANDARD_LIBRARY
    assert not {"jax", "setuptools"} & STANDARD_LIBRARY


@given(st.text(st.characters(codec="utf-8")))
def test_a_literal_is_read_back_the_same(text: str) -> None:
    """It is one line of characters that print."""
    literal = render_string_literal(text)
    assert ast.literal_eval(literal) == text
    assert literal.isprintable()


@pytest.mark.parametrize(
    ("text", "literal"),
    [
        ("it's", '"it\'s"'),
        ('a "b"', "'a \"b\"'"),
        ("""it's "b" \\""", '"it\'s \\"b\\" \\\\"'),
        ("é\n\u202e", '"é\\n\\u202e"'),
    ],
)
def test_literals_have_double_quotes(text: str, literal: str) -> None:
    """Unless single quotes save a backslash."""
    assert render_string_literal(text) == literal
