"""A script that ends in one call of a staged function, as a program. Pure."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Final

from conformance.triage.new.compat import COMPAT, SHARD_MAPS
from conformance.triage.new.observables import Observable, expected_code, peel
from conformance.triage.new.source import called, dotted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from conformance.triage.new.observables import Observables
    from conformance.triage.new.source import ScriptSource

_STAGED: Final = SHARD_MAPS | {"jax.jit", "jax.experimental.pjit.pjit", f"{COMPAT}shard_map"}
_STATIC: Final = ("static_arg", "backend", "device", "donate_arg")
"""Beginnings of keywords under which a call is not plain: the harness lowers and calls apart."""
_PARTIAL: Final = "functools.partial"


def find_program_changes(
    source: ScriptSource, shown: Observables, reference: str = "", comment: str = ""
) -> dict[ast.stmt, str] | None:
    """Return the changes by which a script returns a program, where it ends in a staged call.

    Args:
        source: The script.
        shown: What it shows.
        reference: What the value should be, as an expression.
        comment: A comment on that, with its line end.

    Returns:
        The new statements by those that they replace. None unless it is one for sure: one result
        of one call, of arrays.
    """
    body = source.tree.body
    match shown.found:
        case [Observable(values=[value], is_condition=False) as one] if one.statement is body[-1]:
            changes: dict[ast.stmt, str] = {}
        case _:
            return None
    statement, value = one.statement, peel(value, source.names)
    match value, body:
        case ast.Name(id=used), [
            *_, ast.Assign(targets=[ast.Name(id=name)], value=assigned) as before, _,
        ] if used == name and _uses(source.tree, name) == 2:  # noqa: PLR2004 - once bound, once used  # fmt: skip
            changes[statement] = ""
            statement, value = before, assigned
        case _:
            pass
    match value:
        case ast.Call(func=function, args=args, keywords=keywords) if _is_staged(function, source):
            starred = any(isinstance(node, ast.Starred) for node in args)
            if starred or any(keyword.arg is None for keyword in keywords):
                return None
        case _:
            return None
    parts = [source.segment(function)]
    if args:
        listed = ", ".join(map(source.segment, args))
        parts.append(f"args=({listed}{',' if len(args) == 1 else ''})")
    if keywords:
        pairs = (f'"{one.arg}": {source.segment(one.value)}' for one in keywords)
        parts.append(f"kwargs={{{', '.join(pairs)}}}")
    if expected := expected_code(one, source) or reference:
        parts.append(f"reference={expected}")
    return {**changes, statement: f"{comment}return Program({', '.join(parts)})"}


def _uses(tree: ast.AST, name: str) -> int:
    return sum(isinstance(node, ast.Name) and node.id == name for node in ast.walk(tree))


def _is_staged(node: ast.expr, source: ScriptSource) -> bool:
    """Say whether a function is certainly a staged one, and called without more ado."""
    if isinstance(node, ast.Call):
        return _stages(node, source.names)
    bindings = [one for one in ast.walk(source.tree) if _binds(one, node)]
    if len(bindings) != 1 or bindings[0] not in source.tree.body:
        return False
    match bindings[0]:
        case ast.FunctionDef(decorator_list=[decorator]):
            return _decorates(decorator, source.names)
        case ast.Assign(targets=[ast.Name()], value=ast.Call() as value):
            return _stages(value, source.names)
        case _:
            return False


def _binds(node: ast.AST, name: ast.expr) -> bool:
    match name, node:
        case ast.Name(id=found), ast.FunctionDef(name=bound) | ast.ClassDef(name=bound):
            return bound == found
        case ast.Name(id=found), ast.Assign(targets=targets):
            return any(isinstance(one, ast.Name) and one.id == found for one in targets)
        case _:
            return False


def _stages(node: ast.Call, names: Mapping[str, str]) -> bool:
    """Say whether a call makes a staged function: `jax.jit(f)`."""
    return called(node, names) in _STAGED and bool(node.args) and _is_plain(node)


def _is_plain(node: ast.Call) -> bool:
    return not any((keyword.arg or "static_arg").startswith(_STATIC) for keyword in node.keywords)


def _decorates(node: ast.expr, names: Mapping[str, str]) -> bool:
    if not isinstance(node, ast.Call):
        return dotted(node, names) in _STAGED
    if called(node, names) == _PARTIAL:
        return bool(node.args) and dotted(node.args[0], names) in _STAGED and _is_plain(node)
    return called(node, names) in _STAGED and not node.args and _is_plain(node)
