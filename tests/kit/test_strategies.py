"""Descriptions of strategies, which need neither Hypothesis nor jax."""

from __future__ import annotations

import pytest

from conformance.kit import strategies as st
from conformance.kit.strategies import Strategy


def test_each_function_of_hypothesis_returns_a_description() -> None:
    """With the arguments of the call; names are checked when the case runs."""
    assert st.integers(0, max_value=3) == Strategy("integers", (0,), {"max_value": 3})
    assert st.lists(st.booleans()) == Strategy("lists", (Strategy("booleans"),))
    assert st.arrays("float32", 3, unique=True) == Strategy(
        "arrays", ("float32", 3), {"unique": True}
    )


def test_alternatives_are_one_of() -> None:
    """As in Hypothesis."""
    assert st.none() | st.text() == Strategy("one_of", (Strategy("none"), Strategy("text")))


def test_a_private_name_is_missing() -> None:
    """Python looks for some itself, such as `__path__`."""
    with pytest.raises(AttributeError):
        st._private("x")
