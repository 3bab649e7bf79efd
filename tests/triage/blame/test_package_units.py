"""What can be moved, in which order, and what is looked at first."""

from __future__ import annotations

from conformance.triage.blame.package_units import units_of


def test_packages_that_need_each_other_are_a_unit() -> None:
    """However many steps it takes to come back."""
    units = units_of("abcd", {"a": ["b"], "b": ["c"], "c": ["a"], "d": ["c"]})
    assert units.order == (("a", "b", "c"), ("d",))
    assert units.closed([("d",)]) == frozenset(units.order)
    assert units.dependents([("a", "b", "c")]) == frozenset(units.order)


def test_what_few_use_comes_first() -> None:
    """A new package says which old ones it cannot be with, an old one knows no new ones."""
    units = units_of(["jax", "numpy", "scipy"], {}, users={"numpy": 2, "scipy": 1})
    assert units.order == (("jax",), ("scipy",), ("numpy",))


def test_suspects_come_first() -> None:
    """But for what they need; what is no suspect is searched together."""
    units = units_of("abcde", {"d": ["b"]}, suspects="ad")
    assert units.groups == ((("a",),), (("b",), ("d",)), (("c",), ("e",)))
    assert units.suspects == {("a",), ("d",)}


def test_without_suspects_everything_is_one() -> None:
    """Each unit is searched by itself."""
    assert units_of("ab", {}).groups == ((("a",),), (("b",),))
