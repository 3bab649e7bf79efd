"""Seeds for random numbers of NumPy and of Python that a script draws without one. Pure."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Final

from conformance.triage.new.edits import Edits
from conformance.triage.new.names import called, imported_names

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

_GENERATORS: Final = frozenset({
    "numpy.random.default_rng", "numpy.random.RandomState", "random.Random",
})  # fmt: skip
"""Functions that make a generator from a seed."""
_MODULES: Final = ("numpy.random", "random")
"""Modules whose functions draw from one shared generator, which their `seed` sets."""
_NOT_DRAWING: Final = frozenset({
    "default_rng", "RandomState", "Random", "seed", "get_state", "set_state", "getstate",
    "setstate", "Generator", "SeedSequence", "PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64",
    "SystemRandom",
})  # fmt: skip
"""Names of these modules that do not draw from the shared generator."""


def seeded(text: str) -> str:
    """Return a script whose random numbers have the seed 0 where it gives none.

    Unseeded values differ in every run, so that each release would seem to change them.

    Args:
        text: The script.
    """
    tree = ast.parse(text)
    names = imported_names(tree)
    edits = Edits(text)
    for call in _calls(tree, names, _GENERATORS):
        if not (call.args or call.keywords):
            edits.replace(edits.end(call) - 1, edits.end(call), "0)")
    for module in _MODULES:
        drawing = _first_drawing(tree, names, module)
        if drawing is not None and not [*_calls(tree, names, {f"{module}.seed"})]:
            at = edits.start(drawing)
            edits.replace(at, at, f"import {module}\n{module}.seed(0)\n")
    return edits.applied()


def _calls(tree: ast.AST, names: Mapping[str, str], wanted: Collection[str]) -> Iterator[ast.Call]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and called(node, names) in wanted:
            yield node


def _first_drawing(tree: ast.Module, names: Mapping[str, str], module: str) -> ast.stmt | None:
    """Return the first statement at the top that draws from a module's generator, else None."""
    for statement in tree.body:
        for node in ast.walk(statement):
            parent, _, name = called(node, names).rpartition(".")
            if parent == module and name not in _NOT_DRAWING:
                return statement
    return None
