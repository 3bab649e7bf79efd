"""What names of a script stand for: `jnp.ones` is `jax.numpy.ones`. Pure."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


def imported_names(tree: ast.AST) -> dict[str, str]:
    """Return what each imported name stands for, as a dotted path.

    Args:
        tree: The script.
    """
    names: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                root = alias.name.partition(".")[0]
                names[alias.asname or root] = alias.name if alias.asname else root
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                names[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    return names


def dotted(node: ast.expr, names: Mapping[str, str]) -> str:
    """Return the dotted path that an expression stands for, empty where it is none.

    Args:
        node: `jnp.ones`.
        names: What imported names stand for; others stand for themselves.
    """
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return ""
    return ".".join([names.get(node.id, node.id), *reversed(parts)])


def called(node: ast.AST, names: Mapping[str, str]) -> str:
    """Return the dotted path of what is called, empty where a node is no call of one.

    Args:
        node: Any.
        names: What imported names stand for.
    """
    return dotted(node.func, names) if isinstance(node, ast.Call) else ""


def bound_names(tree: ast.AST) -> set[str]:
    """Return every name that a script binds anywhere, but for what it imports.

    Args:
        tree: The script.
    """
    found = {
        node.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)
    }
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    found |= {node.name for node in ast.walk(tree) if isinstance(node, kinds)}
    found |= {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    return found | {
        node.name for node in ast.walk(tree) if isinstance(node, ast.ExceptHandler) and node.name
    }


def own_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """Yield a node and all below it but the insides of functions, lambdas and classes.

    Args:
        node: Any.
    """
    yield node
    for child in ast.iter_child_nodes(node):
        inner = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
        if not isinstance(child, inner):
            yield from own_nodes(child)
