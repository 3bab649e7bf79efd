"""Which packages a target can import."""

from __future__ import annotations

import pytest

from conformance.triage.blame.suspects import suspects

from .environments import end

PINS = {"jax": "0.6.2", "jaxlib": "0.6.2", "flax": "0.10", "rich": "13", "scipy": "1"}
REQUIRES = {"jax": ["jaxlib"], "flax": ["rich"]}
ENDS = (end(PINS, REQUIRES, {"flax": "flax", "jax": "jax"}), end(PINS, REQUIRES))


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
def test_suspects(source: str, found: set[str]) -> None:
    """What is imported anywhere, and what that asks for; empty where it cannot be known."""
    assert suspects([source], ENDS) == found


def test_suspects_of_several_files() -> None:
    """Of all of them; none are known of a target that has no text."""
    assert suspects(["import jax", "import flax"], ENDS) >= {"jax", "flax", "rich"}
    assert suspects([], ENDS) == set()
