"""What differs in a night, compared with the nights before."""

from __future__ import annotations

from conformance.bench.stored import StoredDifference, compare_with_known


def difference(case: str, *kinds: str) -> StoredDifference:
    """Return a case that differs in some ways."""
    return StoredDifference(case, None, ("a", "b"), ("0.12.0", "0.13.0.dev1"), "text", kinds)


def test_what_differed_before_is_not_new() -> None:
    """Whatever its figures are today."""
    before = [difference("f/a", "run cpu more", "compile cpu less")]
    found = [difference("f/a", "run cpu more"), difference("f/b", "run cpu more")]
    differences = compare_with_known(found, before, {"f/a", "f/b"})
    assert differences.new == (found[1],)
    assert differences.all == tuple(found)


def test_a_case_that_differs_in_another_way_is_new() -> None:
    """It became slower in a second phase."""
    before = [difference("f/a", "compile cpu more")]
    found = [difference("f/a", "compile cpu more", "run cpu more")]
    assert compare_with_known(found, before, {"f/a"}).new == tuple(found)


def test_what_was_not_measured_again_remains() -> None:
    """What was measured and is equal is over."""
    before = [difference("f/a", "run cpu more"), difference("f/b", "run cpu more")]
    differences = compare_with_known([], before, {"f/a"})
    assert (differences.new, differences.all) == ((), (before[1],))
