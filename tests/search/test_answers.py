"""Parts of answers that all searches have in common."""

from __future__ import annotations

import pytest

from conformance.search.answers import format_some, render_flaky
from conformance.search.axes import ABSENT, find_package_moves


@pytest.mark.parametrize(
    ("names", "text"),
    [(["a"], "a"), (["a", "b"], "a, b"), (["a", "b", "c", "d"], "a, b and 2 more")],
)
def test_the_first_names_are_listed_and_the_others_counted(names: list[str], text: str) -> None:
    """The others are counted."""
    assert format_some(names, 2) == text


def test_a_flaky_point_is_described_with_counts() -> None:
    """Each state with its number of trials."""
    line = render_flaky("0.6.0", {"bad": 2, "good": 3})
    assert line == "flaky: 0.6.0 does not show the same twice: bad 2 of 5, good 3 of 5"


def test_package_moves_are_sorted_by_name() -> None:
    """A package may be absent on one side."""
    moves = find_package_moves({"b": "1", "a": "1", "same": "1"}, {"b": "2", "c": "1", "same": "1"})
    assert moves == (("a", "1", ABSENT), ("b", "1", "2"), ("c", ABSENT, "1"))
    assert str(moves[1]) == "b 1 -> 2"
