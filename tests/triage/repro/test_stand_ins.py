"""Pieces of code from templates, and the imports they need."""

from __future__ import annotations

import ast

import pytest

from conformance.triage.repro.stand_ins import COMPAT, CellSurroundings, find_imports, render_piece


def compat(name: str, release: str) -> str:
    """Return a function of `env.compat` as a release spells it."""
    place = CellSurroundings(id="cell", release=release, platform="cpu", versions={}, topology={})
    return render_piece(f"compat_{name}", place=place)


@pytest.mark.parametrize("name", COMPAT)
@pytest.mark.parametrize("release", ["0.4.30", "0.5.3", "0.6.1", "0.8.2", "0.12.0"])
def test_compat_piece_is_one_function(name: str, release: str) -> None:
    """On every release."""
    (function,) = ast.parse(compat(name, release)).body
    assert isinstance(function, ast.FunctionDef)
    assert function.name == name


@pytest.mark.parametrize(
    ("name", "release", "imports"),
    [
        ("shard_map", "0.6.0", ["from jax.experimental.shard_map import shard_map"]),
        ("shard_map", "0.6.1", []),
        ("pvary", "0.5.3", ["from jax.experimental.shard_map import pbroadcast"]),
        ("enable_x64", "0.7.2", ["from jax.experimental import enable_x64"]),
        ("enable_x64", "0.8.0", []),
        ("compute_on", "0.12.0", ["from jax.experimental.compute_on import compute_on"]),
    ],
)
def test_imports_are_found_in_the_text(name: str, release: str, imports: list[str]) -> None:
    """A name of jax itself needs none."""
    assert find_imports(compat(name, release)) == imports
