"""Whether two outputs say the same."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.search.output import differing_lines, same_output, unstable_lines


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("[1.         2.0000002]", "[1. 2.]", True),
        ("loss 0.12345", "loss 0.12346", True),
        ("loss 0.12", "loss 0.13", False),
        ("1e-05 .5", "1.0e-05 0.5", True),
        ("[ 1 12]", "[1 12]", True),
        ("[1 12]", "[11 2]", False),
        ("nan 1.0", "0.0 1.0", False),
        ("float32 1.0", "float64 1.0", False),
        ("one", "one\ntwo", False),
    ],
)
def test_numbers_have_a_tolerance(one: str, other: str, same: bool) -> None:
    """All else must be alike, but for the spaces that align numbers."""
    assert same_output(one, other) is same
    assert same_output(one, other, exact=True) is False


@given(st.text(), st.text())
def test_it_is_an_equivalence_with_itself(one: str, other: str) -> None:
    """Every output is the same as itself, and the order of two does not count."""
    assert same_output(one, one, exact=True)
    assert same_output(one, other) is same_output(other, one)


def test_a_line_that_differs_from_run_to_run_does_not_count() -> None:
    """It is known by two runs of one cell."""
    unstable = unstable_lines("seed 1\nok", "seed 2\nok")
    assert unstable == {0}
    assert same_output("seed 3\nok", "seed 4\nok", unstable)
    assert list(differing_lines("seed 3\nok", "seed 4\nbad", unstable)) == [(1, "ok", "bad")]
