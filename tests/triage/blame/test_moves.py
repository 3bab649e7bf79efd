"""What can be moved, in which order, and what is looked at first."""

from __future__ import annotations

from conformance.triage.blame.moves import moves_of


def test_packages_that_need_each_other_are_a_unit() -> None:
    """However many steps it takes to come back."""
    moves = moves_of("abcd", {"a": ["b"], "b": ["c"], "c": ["a"], "d": ["c"]})
    assert moves.units == (("a", "b", "c"), ("d",))
    assert moves.closed([("d",)]) == frozenset(moves.units)
    assert moves.dependents([("a", "b", "c")]) == frozenset(moves.units)


def test_what_few_use_comes_first() -> None:
    """A new package says which old ones it cannot be with, an old one knows no new ones."""
    moves = moves_of(["jax", "numpy", "scipy"], {}, users={"numpy": 2, "scipy": 1})
    assert moves.units == (("jax",), ("scipy",), ("numpy",))


def test_suspects_come_first() -> None:
    """But for what they need; what is no suspect is searched together."""
    moves = moves_of("abcde", {"d": ["b"]}, suspects="ad")
    assert moves.groups == ((("a",),), (("b",), ("d",)), (("c",), ("e",)))
    assert moves.suspects == {("a",), ("d",)}


def test_without_suspects_everything_is_one() -> None:
    """Each unit is searched by itself."""
    assert moves_of("ab", {}).groups == ((("a",),), (("b",),))
