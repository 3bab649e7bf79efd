"""Which names Python code reads and binds. Pure."""

from __future__ import annotations

import ast
import builtins
import symtable
from collections import Counter
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

SCOPES: Final = (ast.FunctionDef, ast.Lambda, ast.ClassDef)
_GIVEN: Final = frozenset({*dir(builtins), "__name__", "__file__", "__doc__"})


def loads(tree: ast.AST) -> Counter[str]:
    """Return how often each name is read."""
    return Counter(
        node.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
    )


def stores(tree: ast.AST) -> Counter[str]:
    """Return how often each name is bound, by any kind of statement."""
    return Counter(name for node in ast.walk(tree) for name in _bound_by(node))


def own_stores(scope: ast.AST) -> Counter[str]:
    """Return how often a scope binds each name, functions within it left out."""
    return Counter(name for node in own_nodes(scope) for name in _bound_by(node))


def own_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes below a node, except those within functions and classes."""
    for child in ast.iter_child_nodes(node):
        yield child
        if not isinstance(child, SCOPES):
            yield from own_nodes(child)


def parameters(function: ast.AST) -> list[ast.arg]:
    """Return the positional parameters of a function."""
    if not isinstance(function, ast.FunctionDef | ast.Lambda):
        return []
    return [*function.args.posonlyargs, *function.args.args]


def undefined(text: str) -> set[str]:
    """Return the names that a module uses without binding them anywhere.

    Args:
        text: Python.
    """
    tables = [top := symtable.symtable(text, "text", "exec")]
    for table in tables:
        tables += table.get_children()
    known = {
        one.get_name()
        for one in top.get_symbols()
        if one.is_assigned() or one.is_imported() or one.is_namespace()
    }
    used = {
        one.get_name()
        for table in tables
        for one in table.get_symbols()
        if one.is_referenced() and (table is top or one.is_global())
    }
    return used - known - _GIVEN


def _bound_by(node: ast.AST) -> list[str]:
    match node:
        case ast.Name(id=name, ctx=ast.Store() | ast.Del()) | ast.arg(arg=name):
            return [name]
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            return [name]
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            return [one.asname or one.name.partition(".")[0] for one in names]
        case ast.Global(names=shared) | ast.Nonlocal(names=shared):
            return shared * 2  # bound here and elsewhere
        case _:
            return []
