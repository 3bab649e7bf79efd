"""Counts in messages."""

from __future__ import annotations

import pytest

from conformance.wording import plural


@pytest.mark.parametrize(
    ("count", "expected"), [(0, "0 jobs"), (1, "1 job"), (2, "2 jobs"), (1204, "1,204 jobs")]
)
def test_noun_is_plural_unless_the_count_is_one(count: int, expected: str) -> None:
    """Thousands have a separator."""
    assert plural(count, "job") == expected


def test_irregular_plural() -> None:
    """It is an argument."""
    assert plural(2, "entry", "entries") == "2 entries"
    assert plural(1, "entry", "entries") == "1 entry"
