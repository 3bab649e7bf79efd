"""A Python text as a tree whose nodes have numbers and know what they stand in. Pure."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator


class Tree:
    """A text that can be changed.

    Args:
        text: Python.

    Attributes:
        root: The module.
        nodes: Its nodes, in the order they stand.
    """

    def __init__(self, text: str) -> None:
        self.root = ast.parse(text)
        self.nodes: list[ast.AST] = []
        self._parents: dict[ast.AST, tuple[ast.AST, str]] = {}
        self._index(self.root)

    def _index(self, node: ast.AST) -> None:
        self.nodes.append(node)
        for field, value in ast.iter_fields(node):
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST) and not isinstance(child, ast.expr_context):
                    self._parents[child] = (node, field)
                    self._index(child)

    def parent(self, node: ast.AST) -> ast.AST:
        """Return what a node stands in; the module stands in itself."""
        return self._parents[node][0] if node in self._parents else self.root

    def field(self, node: ast.AST) -> str:
        """Return the name of the part of its parent that a node is, or is one of."""
        return self._parents[node][1] if node in self._parents else ""

    def above(self, node: ast.AST) -> Iterator[ast.AST]:
        """Yield what a node stands in, from the inside out."""
        while node in self._parents:
            node = self._parents[node][0]
            yield node

    def statement(self, node: ast.AST) -> ast.AST:
        """Return the innermost statement that a node stands in, or is."""
        if isinstance(node, ast.stmt):
            return node
        return next((one for one in self.above(node) if isinstance(one, ast.stmt)), self.root)

    def _place(self, node: ast.AST) -> tuple[Any, int | None]:
        """Return where a node stands: a list and its place there, or its parent."""
        parent, field = self._parents[node]
        value = getattr(parent, field)
        if not isinstance(value, list):
            return parent, None
        found = (n for n, one in enumerate(value) if one is node)
        return value, next(found, None)

    def remove(self, node: ast.AST) -> bool:
        """Take a node out of the list it stands in; say whether it stood in one."""
        place, number = self._place(node)
        if number is None:
            return isinstance(place, list)  # it went with another one
        del place[number]
        return True

    def replace(self, node: ast.AST, new: ast.AST) -> None:
        """Put another node in the place of one."""
        place, number = self._place(node)
        if isinstance(place, list):
            if number is not None:
                place[number] = new
        else:
            setattr(place, self._parents[node][1], new)

    def replace_statement(self, node: ast.AST, new: list[ast.stmt]) -> bool:
        """Put some statements in the place of one."""
        place, number = self._place(node)
        if not isinstance(place, list) or number is None:
            return isinstance(place, list)
        place[number : number + 1] = new
        return True


def size(node: ast.AST) -> int:
    """Return how many nodes there are below and with a node, what says nothing left out."""
    silent = (ast.expr_context, ast.operator, ast.arguments)
    return sum(1 for one in ast.walk(node) if not isinstance(one, silent))


def parameters(function: ast.AST) -> list[ast.arg]:
    """Return the positional parameters of a function."""
    if not isinstance(function, ast.FunctionDef | ast.Lambda):
        return []
    return [*function.args.posonlyargs, *function.args.args]
