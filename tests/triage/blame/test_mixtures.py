"""Mixtures of two environments, their units and suspects."""

from __future__ import annotations

import pytest

from conformance.search.axes import find_package_moves
from conformance.triage.blame.mixtures import find_needs, find_suspects, make_units, mix

from .environments import end

OLD = {"jax": "0.6.0", "jaxlib": "0.6.0", "numpy": "1.26.4", "gone": "1", "same": "3"}
NEW = {"jax": "0.6.2", "jaxlib": "0.6.2", "numpy": "2.0.2", "new": "2", "same": "3"}
PINS = {"jax": "0.6.2", "jaxlib": "0.6.2", "flax": "0.10", "rich": "13", "scipy": "1"}
REQUIRES = {"jax": ["jaxlib"], "flax": ["rich"]}
ENDS = (end(PINS, REQUIRES, {"flax": "flax", "jax": "jax"}), end(PINS, REQUIRES))


def test_packages_that_differ_are_found() -> None:
    """Including packages of one side only."""
    assert [str(moved) for moved in find_package_moves(OLD, NEW)] == [
        "gone 1 -> none", "jax 0.6.0 -> 0.6.2", "jaxlib 0.6.0 -> 0.6.2", "new none -> 2",
        "numpy 1.26.4 -> 2.0.2",
    ]  # fmt: skip


def test_needs_follow_from_unmet_requirements() -> None:
    """Of a new package on another, or of an old package that excludes a new one."""
    before = end(OLD, {"jax": ["jaxlib<=0.6.0", "numpy>=1.25", "gone", "same"]})
    after = end(NEW, {"jax": ["jaxlib>=0.6.2", "new"], "same": ["numpy>=2"]})
    assert find_needs(before, after) == {
        "jax": {
            "jaxlib": "jax 0.6.2 asks for jaxlib>=0.6.2, not 0.6.0",
            "new": "jax 0.6.2 asks for new, not none",
        },
        "jaxlib": {"jax": "jax 0.6.0 asks for jaxlib<=0.6.0, not 0.6.2"},
        "gone": {"jax": "jax 0.6.0 asks for gone, not none"},
        "new": {},
        "numpy": {},
    }


def test_a_mixture_has_the_lines_of_both_locks() -> None:
    """With their hashes; it is a cell of the jax that it has, with an id of its own."""
    before, after = end(OLD), end(NEW)
    planned, lock = mix(before, after, {"numpy", "gone", "new"})
    kept = {"jax": "0.6.0", "jaxlib": "0.6.0", "same": "3"}
    assert lock.pins == {**kept, "numpy": "2.0.2", "new": "2"}
    assert "--hash=sha256:numpy2.0.2" in lock.text
    assert planned.cell.release == planned.release == "0.6.0"
    assert lock.headers["environment"] == planned.cell.env_id
    other, _ = mix(before, after, {"numpy"})
    assert other.cell.id != planned.cell.id != before.planned.cell.id
    assert mix(before, after, {"jax", "jaxlib"})[0].cell.release == "0.6.2"


def test_a_mixture_of_everything_is_one_of_the_ends() -> None:
    """Except for its name."""
    before, after = end(OLD), end(NEW)
    assert mix(before, after, ())[1].pins == OLD
    assert mix(before, after, {*OLD, *NEW})[1].pins == NEW


def test_packages_that_need_each_other_are_a_unit() -> None:
    """Also through other packages."""
    units = make_units("abcd", {"a": ["b"], "b": ["c"], "c": ["a"], "d": ["c"]})
    assert units.order == (("a", "b", "c"), ("d",))
    assert units.add_needs([("d",)]) == frozenset(units.order)
    assert units.add_dependents([("a", "b", "c")]) == frozenset(units.order)


def test_packages_with_few_users_come_first() -> None:
    """A new package says which old ones it cannot be with, an old one knows no new ones."""
    units = make_units(["jax", "numpy", "scipy"], {}, users={"numpy": 2, "scipy": 1})
    assert units.order == (("jax",), ("scipy",), ("numpy",))


def test_suspects_come_first() -> None:
    """After the units that they need; other units are searched together."""
    units = make_units("abcde", {"d": ["b"]}, suspects="ad")
    assert units.groups == ((("a",),), (("b",), ("d",)), (("c",), ("e",)))
    assert units.suspects == {("a",), ("d",)}


def test_without_suspects_each_unit_is_a_group() -> None:
    """Each unit is searched by itself."""
    assert make_units("ab", {}).groups == ((("a",),), (("b",),))


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("import os, jax.numpy", {"jax", "jaxlib", "numpy"}),
        ("def f():\n    from flax import nnx", {"jax", "jaxlib", "numpy", "flax", "rich"}),
        ("import mine", set()),  # which may import anything
        ("import jax\nfrom . import mine", {"jax", "jaxlib", "numpy"}),  # which is given, too
        ("import jax\nthis is no Python", set()),
        ("", set()),
    ],
)
def test_suspects_are_the_imported_packages(source: str, found: set[str]) -> None:
    """With their requirements; empty if they are unknown."""
    assert find_suspects([source], ENDS) == found


def test_suspects_of_several_files_are_combined() -> None:
    """Unknown for a target without text."""
    assert find_suspects(["import jax", "import flax"], ENDS) >= {"jax", "flax", "rich"}
    assert find_suspects([], ENDS) == set()
