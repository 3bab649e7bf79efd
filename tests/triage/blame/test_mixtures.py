"""Mixtures of two environments: what differs, what needs what, and the lock."""

from __future__ import annotations

from conformance.search.packages import package_moves
from conformance.triage.blame.mixtures import mixture, needs

from .environments import end

OLD = {"jax": "0.6.0", "jaxlib": "0.6.0", "numpy": "1.26.4", "gone": "1", "same": "3"}
NEW = {"jax": "0.6.2", "jaxlib": "0.6.2", "numpy": "2.0.2", "new": "2", "same": "3"}


def test_what_differs() -> None:
    """Also what is there on one side only."""
    assert [str(moved) for moved in package_moves(OLD, NEW)] == [
        "gone 1 -> none", "jax 0.6.0 -> 0.6.2", "jaxlib 0.6.0 -> 0.6.2", "new none -> 2",
        "numpy 1.26.4 -> 2.0.2",
    ]  # fmt: skip


def test_what_needs_what() -> None:
    """A new package may ask for another new one, an old package may not go with a new one."""
    before = end(OLD, {"jax": ["jaxlib<=0.6.0", "numpy>=1.25", "gone", "same"]})
    after = end(NEW, {"jax": ["jaxlib>=0.6.2", "new"], "same": ["numpy>=2"]})
    assert needs(before, after) == {
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
    planned, lock = mixture(before, after, {"numpy", "gone", "new"})
    kept = {"jax": "0.6.0", "jaxlib": "0.6.0", "same": "3"}
    assert lock.pins == {**kept, "numpy": "2.0.2", "new": "2"}
    assert "--hash=sha256:numpy2.0.2" in lock.text
    assert planned.cell.release == planned.release == "0.6.0"
    assert lock.headers["environment"] == planned.cell.env_id
    other, _ = mixture(before, after, {"numpy"})
    assert other.cell.id != planned.cell.id != before.planned.cell.id
    assert mixture(before, after, {"jax", "jaxlib"})[0].cell.release == "0.6.2"


def test_a_mixture_of_everything_is_one_of_the_ends() -> None:
    """But for its name."""
    before, after = end(OLD), end(NEW)
    assert mixture(before, after, ())[1].pins == OLD
    assert mixture(before, after, {*OLD, *NEW})[1].pins == NEW
