"""Counts in sentences."""

from __future__ import annotations

import pytest

from conformance.wording import plural


@pytest.mark.parametrize(
    ("count", "expected"), [(0, "0 jobs"), (1, "1 job"), (2, "2 jobs"), (1204, "1,204 jobs")]
)
def test_a_noun_is_in_the_plural_unless_there_is_one(count: int, expected: str) -> None:
    """Thousands have a separator."""
    assert plural(count, "job") == expected


def test_an_irregular_plural_is_given() -> None:
    """English has few rules."""
    assert plural(2, "entry", "entries") == "2 entries"
    assert plural(1, "entry", "entries") == "1 entry"
