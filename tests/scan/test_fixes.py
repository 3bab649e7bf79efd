"""Fixes as the table has them: forms, their parameters, and the releases that they are for."""

from __future__ import annotations

import pytest

from conformance.scan.fixes import FixTable, FormState, parse_fix
from conformance.scan.signatures import CallShape

MOVED = parse_fix("moved", {"old": "jax.old.f", "new": "jax.new.f"})
CLIP = parse_fix("clip", {"old": "jax.clip(a, low, out)", "new": "jax.clip(a, /, min, _)"})


def call(positions: int, *keywords: str) -> CallShape:
    """Return the arguments of a call."""
    return CallShape(positions=positions, keywords=frozenset(keywords))


def test_a_form_has_parameters() -> None:
    """By position, by keyword, with defaults."""
    fix = parse_fix("x", {"old": "jax.f(a=True)", "code": "jax.g(a)"})
    assert [(one.name, one.default) for one in fix.parameters] == [("a", "True")]
    assert [(one.name, one.by_keyword) for one in CLIP.renamed] == [
        ("a", False), ("min", True), ("_", True),
    ]  # fmt: skip
    assert not MOVED.changes_call
    assert CLIP.changes_call


@pytest.mark.parametrize(
    ("name", "found"),
    [("jax.old.f", True), ("jax.old.f.g", True), ("jax.old", False), ("jax.old.ff", False)],
)
def test_a_fix_is_found_by_name(name: str, found: bool) -> None:
    """Or by that of the module, or the class, that the name is in."""
    assert (FixTable([MOVED]).find(name) is MOVED) is found


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        (call(2), False),
        (call(1, "other"), False),
        (call(1, "low"), True),
        (call(0, "a"), True),
        (call(3), True),
        (None, False),
    ],
)
def test_a_fix_concerns_calls_that_it_changes(shape: CallShape | None, expected: bool) -> None:
    """Renamed or dropped parameters, and those that are passed in another way."""
    assert CLIP.concerns(shape) is expected
    assert MOVED.concerns(shape)


@pytest.mark.parametrize(
    ("before", "after", "due"),
    [("works", "works", False), ("warns", "works", True), ("raises", "works", True),
     ("raises", "raises", False), ("warns", "warns", False)],
)  # fmt: skip
def test_a_fix_is_due_in_some_releases(before: str, after: str, due: bool) -> None:
    """Those where the form before is no longer right, and the form after is."""
    states = {"1.0": (FormState(before), FormState(after))}
    fix = parse_fix("x", {"old": "jax.f", "new": "jax.g"}, states)
    assert fix.is_due("1.0") is due
    assert fix.works("1.0") is (after != "raises")
    assert not fix.is_due("2.0")
