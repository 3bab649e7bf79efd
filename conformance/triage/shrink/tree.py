"""Python code as a tree, and a copy of it with other nodes in the place of some. Pure."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    Changes = Mapping[ast.AST, Sequence[ast.AST]]
    """Replacements by node, none to drop it; nodes of the tree and the node itself are allowed."""


class Tree:
    """Code whose nodes know what they are in.

    Args:
        text: Python.

    Attributes:
        text: The code.
        root: The module; it is never changed.
        nodes: Its nodes, in the order of the code.
    """

    def __init__(self, text: str) -> None:
        self.text, self.root = text, ast.parse(text)
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
        """Return the node that a node is in; that of the module is itself."""
        return self._parents[node][0] if node in self._parents else self.root

    def field(self, node: ast.AST) -> str:
        """Return the name of the part of its parent that a node is, or is in."""
        return self._parents[node][1] if node in self._parents else ""

    def above(self, node: ast.AST) -> Iterator[ast.AST]:
        """Yield the nodes that a node is in, from the inside out."""
        while node in self._parents:
            node = self._parents[node][0]
            yield node

    def statement(self, node: ast.AST) -> ast.AST:
        """Return the innermost statement that a node is in, or is."""
        around = (one for one in (node, *self.above(node)) if isinstance(one, ast.stmt))
        return next(around, self.root)

    def reads(self, name: str) -> list[ast.Name]:
        """Return the nodes that read a name."""
        names = (one for one in self.nodes if isinstance(one, ast.Name) and one.id == name)
        return [one for one in names if isinstance(one.ctx, ast.Load)]


def changed(root: ast.Module, changes: Changes) -> ast.Module:
    """Return a copy of a module with changes.

    Args:
        root: The module.
        changes: For some nodes the nodes in their place; none drops one out of a list.
    """
    copied: ast.Module = _copied(root, changes)
    return copied


def copied_with(node: ast.expr, changes: Changes) -> ast.expr:
    """Return a copy of an expression with changes."""
    copied: ast.expr = _rebuilt(node, changes)[0]
    return copied


def _rebuilt(node: Any, changes: Changes) -> list[Any]:
    if not isinstance(node, ast.AST):
        return [node]
    if node not in changes:
        return [_copied(node, changes)]
    return [
        copied
        for one in changes[node]
        for copied in ([_copied(one, changes)] if one is node else _rebuilt(one, changes))
    ]


def _copied(node: ast.AST, changes: Changes) -> Any:
    fields: dict[str, Any] = {}
    for name, value in ast.iter_fields(node):
        if isinstance(value, list):
            fields[name] = [copied for one in value for copied in _rebuilt(one, changes)]
        else:
            fields[name] = next(iter(_rebuilt(value, changes)), None)
    return type(node)(**fields)


def size(node: ast.AST) -> int:
    """Return how many nodes there are below and with a node, except those without meaning."""
    silent = (ast.expr_context, ast.operator, ast.arguments)
    return sum(not isinstance(one, silent) for one in ast.walk(node))
