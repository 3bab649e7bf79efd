"""Seeds for random numbers of NumPy and of Python that a script draws without one. Pure."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any, Final

import libcst as cst

from conformance.triage.new.source import called, qualified

if TYPE_CHECKING:
    from conformance.triage.new.source import ScriptSource

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


def add_seeds(source: ScriptSource) -> ScriptSource:
    """Return a script whose random numbers have the seed 0 where it gives none.

    Unseeded values differ in every run, so that each release would seem to change them.

    Args:
        source: The script.
    """

    def seed(_: cst.CSTNode, node: cst.CSTNode) -> Any:
        match node:
            case cst.Call(args=[]) if qualified(node, source.names) in _GENERATORS:
                return node.with_changes(args=[cst.Arg(cst.Integer("0"))])
            case _:
                return node

    source = source.transform(seed)
    for module in _MODULES:
        paths = {
            statement: [called(node, source.names) for node in ast.walk(statement)]
            for statement in source.tree.body
        }
        if any(f"{module}.seed" in called_there for called_there in paths.values()):
            continue
        drawing = (node for node, called_there in paths.items() if _draws(called_there, module))
        if (first := next(drawing, None)) is not None:
            source = source.insert(first, f"import {module}\n{module}.seed(0)")
    return source


def _draws(paths: list[str], module: str) -> bool:
    """Say whether one of some functions draws from a module's generator."""
    parts = (path.rpartition(".") for path in paths)
    return any(parent == module and name not in _NOT_DRAWING for parent, _, name in parts)
