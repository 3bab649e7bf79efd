"""Cuts of a Python text: what may be left out of it, or made smaller. Pure.

A cut is known by the number of the node it is about, counted as the text is read; several cuts of
one text may be made together. Whether what is left still shows what it should is not asked here.
"""

from __future__ import annotations

import ast
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from conformance.triage.shrink.inline import inline_function, inline_name
from conformance.triage.shrink.signatures import drop_output, drop_parameter
from conformance.triage.shrink.tidy import tidy, undefined
from conformance.triage.shrink.tree import Tree

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

Kind = Literal[
    "drop", "unwrap", "item", "become", "number", "function", "name", "parameter", "output"
]
PLAIN: Final = frozenset({0, 1, 2.0, 0.5})
"""Numbers that no other one is simpler than."""
WIDE: Final = frozenset({
    "float64", "float16", "bfloat16", "complex64", "complex128", "int64", "int8", "int16",
})  # fmt: skip
"""Dtypes that count for more than float32 and int32 do."""
LARGEST: Final = 1 << 40
"""What larger numbers count for."""
MADE: Final = frozenset({
    "random", "normal", "standard_normal", "uniform", "integers", "linspace",
})  # fmt: skip
"""How functions are called that make arrays of some shape; one of ones is simpler."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """One cut.

    Attributes:
        kind: What is done: a statement dropped, or replaced by what it holds; an item of a list
            or a keyword dropped; an expression replaced; a number; a function or a name put
            where it is used; a parameter, or one of several results, dropped everywhere.
        node: Number of the node.
        arg: What it becomes, or which part of it is meant.
        gain: How much it takes away, roughly: the largest are tried first.
        key: What tells it from others where the numbers of nodes have moved.
    """

    kind: Kind
    node: int
    arg: str = ""
    gain: int = 0
    key: str = ""


def cost(text: str) -> tuple[int, int, int]:
    """Return how large a text is: its nodes, its numbers, its characters."""
    nodes = magnitude = 0
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.expr_context() | ast.operator() | ast.arguments() | ast.Module():
                continue
            case ast.Constant(value=bool() | None):
                pass
            case ast.Constant(value=int() | float() as value):
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


def apply(text: str, edits: Iterable[Edit], keep: str) -> str | None:
    """Return a text with some cuts made, and tidied.

    Args:
        text: Python.
        edits: Cuts of this very text.
        keep: Name of the function that all is for.

    Returns:
        The new text; None where it would be no smaller, or could not run for sure.
    """
    tree = Tree(text)
    for edit in edits:
        if not _APPLIED[edit.kind](tree, edit):
            return None
    try:
        cut = ast.unparse(tidy(ast.fix_missing_locations(tree.root), keep))
        missing = undefined(cut)
        if missing == {"np"}:
            cut = f"import numpy as np\n{cut}"
        elif missing:
            return None
    except (SyntaxError, ValueError, RecursionError):
        return None
    return cut if cost(cut) < cost(text) else None


def _drop(tree: Tree, edit: Edit) -> bool:
    node = tree.nodes[edit.node]
    return tree.remove(node)


def _unwrap(tree: Tree, edit: Edit) -> bool:
    node = tree.nodes[edit.node]
    return tree.replace_statement(node, list(getattr(node, edit.arg)))


def _item(tree: Tree, edit: Edit) -> bool:
    node = tree.nodes[edit.node]
    parent = tree.parent(node)
    if isinstance(parent, ast.Dict):
        number = next((n for n, key in enumerate(parent.keys) if key is node), None)
        if number is not None:
            del parent.keys[number], parent.values[number]
        return number is not None
    return tree.remove(node)


def _become(tree: Tree, edit: Edit) -> bool:
    tree.replace(tree.nodes[edit.node], ast.parse(edit.arg, mode="eval").body)
    return True


def _number(tree: Tree, edit: Edit) -> bool:
    """Change a number: here, or (with a leading `*`) wherever the same number stands.

    `/N` divides every number that N divides.
    """
    if edit.arg.startswith("/"):
        return _divided(tree, int(edit.arg[1:]))
    everywhere = edit.arg.startswith("*")
    new = ast.literal_eval(edit.arg.lstrip("*"))
    one = tree.nodes[edit.node]
    old = getattr(one, "value", None)
    for node in tree.nodes if everywhere else [one]:
        if isinstance(node, ast.Constant) and type(node.value) is type(old) and node.value == old:
            node.value = new
    return True


def _divided(tree: Tree, by: int) -> bool:
    for node in tree.nodes:
        match node:
            case ast.Constant(value=bool()):
                pass
            case ast.Constant(value=int() | float() as value) if value and value % by == 0:
                node.value = type(value)(value / by)
            case _:
                pass
    return True


def _function(tree: Tree, edit: Edit) -> bool:
    return inline_function(tree, tree.nodes[edit.node])


def _name(tree: Tree, edit: Edit) -> bool:
    return inline_name(tree, tree.nodes[edit.node])


def _parameter(tree: Tree, edit: Edit) -> bool:
    tuples = edit.arg.startswith("*")
    return drop_parameter(tree, tree.nodes[edit.node], int(edit.arg.lstrip("*")), tuples=tuples)


def _output(tree: Tree, edit: Edit) -> bool:
    count, number, where = edit.arg.split(" ")
    return drop_output(tree, int(count), int(number), where)


_APPLIED: Final[dict[Kind, Callable[[Tree, Edit], bool]]] = {
    "drop": _drop,
    "unwrap": _unwrap,
    "item": _item,
    "become": _become,
    "number": _number,
    "function": _function,
    "name": _name,
    "parameter": _parameter,
    "output": _output,
}
