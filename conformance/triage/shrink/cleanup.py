"""Removes code that does nothing, without changing what the rest does. Pure.

Unused imports, functions and names; branches of constant conditions; constants in the place of
the names they are bound to. None of this needs a probe, so it is done after each cut.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any, Final

from conformance.triage.shrink.bindings import loads
from conformance.triage.shrink.constant_folding import fold

if TYPE_CHECKING:
    from collections.abc import Iterator

_ROUNDS: Final = 20


def tidy(tree: ast.Module, keep: str) -> ast.Module:
    """Return a module without what it does not use.

    Args:
        tree: The module; it is changed.
        keep: Name of the function that all else is for.
    """
    before = ast.dump(tree)
    for _ in range(_ROUNDS):
        for node in ast.walk(tree):
            for field in ("body", "orelse", "finalbody"):
                if isinstance(body := getattr(node, field, None), list):
                    body[:] = _effective(body)
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                node.returns = None
            elif isinstance(node, ast.arg):
                node.annotation = None
        tree = fold(tree)
        _Unused(tree, keep).visit(tree)
        for node in ast.walk(tree):
            body = getattr(node, "body", None)
            if isinstance(body, list) and not isinstance(node, ast.Module):
                body[:] = [one for one in body if not isinstance(one, ast.Pass)] or [ast.Pass()]
        after = ast.dump(tree)
        if after == before:
            break
        before = after
    return ast.fix_missing_locations(tree)


def _effective(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield statements up to the first jump, without docstrings and other constants or names."""
    for one in body:
        if not (isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant | ast.Name)):
            yield from _parted(one)
        if isinstance(one, ast.Return | ast.Raise):
            return


def _parted(statement: ast.stmt) -> list[Any]:
    """Return the assignments of `a, b = x, y`, unless a value reads one of the names."""
    match statement:
        case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)) if len(
            targets
        ) == len(values):
            names = {target.id for target in targets if isinstance(target, ast.Name)}
            if len(names) == len(targets) and not names & set(loads(statement.value)):
                return [
                    ast.Assign(targets=[target], value=value)
                    for target, value in zip(targets, values, strict=True)
                ]
        case _:
            pass
    return [statement]


class _Unused(ast.NodeTransformer):
    """Drops imports, functions and plain assignments whose names nothing reads."""

    def __init__(self, tree: ast.Module, keep: str) -> None:
        self._loads, self._keep = loads(tree), keep

    def _is_unused(self, name: str, node: ast.AST) -> bool:
        return name != self._keep and self._loads[name] <= loads(node)[name]

    def visit_Import(self, node: ast.Import | ast.ImportFrom) -> ast.stmt | None:
        if isinstance(node, ast.ImportFrom) and node.module == "__future__":
            return None  # no annotations are left
        node.names = [
            one
            for one in node.names
            if not self._is_unused(one.asname or one.name.partition(".")[0], node)
        ]
        return node if node.names else None

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.stmt | None:
        return self.visit_Import(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.stmt | None:
        if self._is_unused(node.name, node):
            return None
        self.generic_visit(node)
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.stmt | None:
        # Methods are used by other names than those that are bound.
        return None if self._is_unused(node.name, node) else node

    def visit_Assign(self, node: ast.Assign) -> ast.stmt | None:
        names = [one for target in node.targets for one in ast.walk(target)]
        is_plain = all(isinstance(one, ast.Name | ast.Tuple | ast.Store) for one in names)
        is_read = any(self._loads[one.id] for one in names if isinstance(one, ast.Name))
        return None if is_plain and not is_read and _is_quiet(node.value) else node


def _is_quiet(node: ast.expr) -> bool:
    """Say whether computing an expression cannot fail, nor do anything else."""
    quiet = ast.Constant | ast.Name | ast.Tuple | ast.List | ast.Attribute
    children = (one for one in ast.iter_child_nodes(node) if isinstance(one, ast.expr))
    return isinstance(node, ast.Lambda) or (
        isinstance(node, quiet) and all(map(_is_quiet, children))
    )
