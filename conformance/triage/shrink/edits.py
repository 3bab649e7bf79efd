"""Cuts of Python code: what may be left out of it, or made smaller. Pure.

A cut maps nodes to what comes in their place; several cuts of one tree may be made together.
Whether the rest still shows what it should is not asked here.
"""

from __future__ import annotations

import ast
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from conformance.triage.shrink.bindings import undefined
from conformance.triage.shrink.cleanup import tidy
from conformance.triage.shrink.tree import changed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from conformance.triage.shrink.tree import Changes, Tree

PLAIN: Final = frozenset({0, 1, 2.0, 0.5})
"""Numbers that no other one is simpler than."""
WIDE: Final = frozenset({
    "float64", "float16", "bfloat16", "complex64", "complex128", "int64", "int8", "int16",
})  # fmt: skip
"""Dtypes that count for more than float32 and int32 do."""
LARGEST: Final = 1 << 40
"""Larger numbers count for as much."""
MADE: Final = frozenset({
    "random", "normal", "standard_normal", "uniform", "integers", "linspace",
})  # fmt: skip
"""Names of functions that make arrays of some shape; one of ones is simpler."""


@dataclass(frozen=True, slots=True, eq=False)
class Edit:
    """One cut.

    Attributes:
        tree: The code.
        changes: What comes in the place of its nodes.
        key: What identifies the cut where other cuts were made before it.
        gain: How much it takes away, roughly: the largest are tried first.
    """

    tree: Tree
    changes: Changes
    key: tuple[str, ...]
    gain: int = 0


def cost(text: str) -> tuple[int, int, int]:
    """Return how large a text is: its nodes, its numbers, its characters."""
    nodes = magnitude = 0
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.expr_context() | ast.operator() | ast.arguments() | ast.Module():
                continue
            case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
                magnitude += _magnitude(value)
            case ast.Attribute(attr=name):
                magnitude += (name in WIDE) + (name == "arange") + 2 * (name in MADE)
            case ast.Tuple() | ast.FunctionDef():
                nodes += 1
            case _:
                pass
        nodes += 1
    return nodes, magnitude, len(text)


def _magnitude(value: float) -> int:
    if type(value) is float and (value in PLAIN or not math.isfinite(value)):
        return 0
    whole = value == value // 1
    return int(min(abs(value), LARGEST)) if whole else len(repr(value))


def apply(edits: Sequence[Edit], keep: str) -> str | None:
    """Return code with some cuts made, and tidied.

    Args:
        edits: Cuts of one tree, at least one.
        keep: Name of the function that all is for.

    Returns:
        The new code; None where it would be no smaller, or could not run for sure.
    """
    tree = edits[0].tree
    changes: dict[ast.AST, Sequence[ast.AST]] = {}
    for edit in edits:
        changes |= edit.changes
    try:
        cut = ast.unparse(tidy(changed(tree.root, changes), keep))
        missing = undefined(cut)
        if missing == {"np"}:
            cut = f"import numpy as np\n{cut}"
        elif missing:
            return None
    except (SyntaxError, ValueError, RecursionError):
        return None
    return cut if cost(cut) < cost(tree.text) else None
