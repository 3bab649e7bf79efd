"""What can be taken out of a Python text without changing what it does. Pure.

Unused imports, functions and names; branches of constant conditions; constants in the place of
the names they are bound to. Nothing of this needs a probe, so it is done after each cut.
"""

from __future__ import annotations

import ast
import builtins
import symtable
from typing import TYPE_CHECKING, Final

from conformance.triage.shrink.fold import fold, loads

if TYPE_CHECKING:
    from collections.abc import Iterator

_GIVEN: Final = frozenset({*dir(builtins), "__name__", "__file__", "__doc__"})
_ROUNDS: Final = 20


def tidy(tree: ast.Module, keep: str) -> ast.Module:
    """Return a module without what it does not use.

    Args:
        tree: The module; it is changed.
        keep: Name of the function that all else is for.
    """
    before = ast.dump(tree)
    for _ in range(_ROUNDS):
        _drop_texts(tree)
        _part_assignments(tree)
        tree = fold(tree)
        _Unused(tree, keep).visit(tree)
        _fill_bodies(tree)
        after = ast.dump(tree)
        if after == before:
            break
        before = after
    return ast.fix_missing_locations(tree)


def undefined(text: str) -> set[str]:
    """Return the names that a module uses without binding them anywhere.

    Args:
        text: Python.
    """
    top = symtable.symtable(text, "text", "exec")
    known = {one.get_name() for one in top.get_symbols() if one.is_assigned() or one.is_imported()}
    known |= {one.get_name() for one in top.get_symbols() if one.is_namespace()}
    used: set[str] = set()
    pending = [top]
    while pending:
        table = pending.pop()
        pending += table.get_children()
        for one in table.get_symbols():
            if one.is_referenced() and (table is top or one.is_global()):
                used.add(one.get_name())
    return used - known - _GIVEN


def _drop_texts(tree: ast.Module) -> None:
    """Drop docstrings and other statements that are but a constant or a name."""
    for body in bodies(tree):
        body[:] = [
            one
            for one in body
            if not (isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant | ast.Name))
        ]
        jumps = (n for n, one in enumerate(body) if isinstance(one, ast.Return | ast.Raise))
        if (last := next(jumps, None)) is not None:
            del body[last + 1 :]
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            node.returns = None
            for one in ast.walk(node.args):
                if isinstance(one, ast.arg):
                    one.annotation = None


def _part_assignments(tree: ast.Module) -> None:
    """Make several assignments of `a, b = x, y`, where no value reads one of the names."""
    for body in bodies(tree):
        for one in list(body):
            match one:
                case ast.Assign(
                    targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)
                ) if len(targets) == len(values):
                    names = {target.id for target in targets if isinstance(target, ast.Name)}
                    if len(names) == len(targets) and not names & set(loads(one.value)):
                        at = body.index(one)
                        body[at : at + 1] = [
                            ast.Assign(targets=[target], value=value)
                            for target, value in zip(targets, values, strict=True)
                        ]


def bodies(tree: ast.AST) -> Iterator[list[ast.stmt]]:
    """Yield every list of statements below a node."""
    for node in ast.walk(tree):
        for name in ("body", "orelse", "finalbody"):
            found = getattr(node, name, None)
            if isinstance(found, list):
                yield found


def _fill_bodies(tree: ast.Module) -> None:
    for node in ast.walk(tree):
        found = getattr(node, "body", None)
        if isinstance(found, list) and not found and not isinstance(node, ast.Module):
            found.append(ast.Pass())
        if isinstance(found, list) and len(found) > 1:
            found[:] = [one for one in found if not isinstance(one, ast.Pass)] or [ast.Pass()]


class _Unused(ast.NodeTransformer):
    """Drops imports, functions and plain assignments whose names nothing reads."""

    def __init__(self, tree: ast.Module, keep: str) -> None:
        self._loads, self._keep = loads(tree), keep

    def _unused(self, name: str, node: ast.AST) -> bool:
        return name != self._keep and self._loads[name] <= loads(node)[name]

    def visit_Import(self, node: ast.Import) -> ast.stmt | None:
        node.names = [
            one
            for one in node.names
            if not self._unused(one.asname or one.name.partition(".")[0], node)
        ]
        return node if node.names else None

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.stmt | None:
        if node.module == "__future__":
            return None  # no annotations are left
        node.names = [one for one in node.names if not self._unused(one.asname or one.name, node)]
        return node if node.names else None

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.stmt | None:
        if self._unused(node.name, node):
            return None
        self.generic_visit(node)
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.stmt | None:
        return None if self._unused(node.name, node) else node  # methods are used by other names

    def visit_Assign(self, node: ast.Assign) -> ast.stmt | None:
        names = [one for target in node.targets for one in ast.walk(target)]
        if (
            all(isinstance(one, ast.Name | ast.Tuple | ast.Store) for one in names)
            and not any(self._loads[one.id] for one in names if isinstance(one, ast.Name))
            and is_quiet(node.value)
        ):
            return None
        return node


def is_quiet(node: ast.expr) -> bool:
    """Say whether computing an expression cannot fail, nor do anything else."""
    quiet = (
        ast.Constant, ast.Name, ast.Lambda, ast.Tuple, ast.List, ast.Load, ast.Attribute,
    )  # fmt: skip
    if isinstance(node, ast.Lambda):
        return True
    return isinstance(node, quiet) and all(
        is_quiet(one) for one in ast.iter_child_nodes(node) if isinstance(one, ast.expr)
    )
