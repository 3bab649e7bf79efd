"""A script that ends in one call of a staged function, as a program. Pure."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Final

from conformance.triage.new.names import called, dotted
from conformance.triage.new.shown import as_array, peeled

if TYPE_CHECKING:
    from collections.abc import Mapping

    from conformance.triage.new.edits import Edits
    from conformance.triage.new.script import Script
    from conformance.triage.new.shown import Show, Shown

_STAGED: Final = frozenset({
    "jax.jit", "jax.shard_map", "jax.experimental.shard_map.shard_map",
    "jax.experimental.pjit.pjit",
})  # fmt: skip
_STATIC: Final = ("static_arg", "backend", "device", "donate_arg")
"""Beginnings of keywords under which a call is not plain: the harness lowers and calls apart."""
_PARTIAL: Final = "functools.partial"


def program_edits(
    script: Script, show: Show, edits: Edits, *, reference: str = "", note: str = ""
) -> bool:
    """Make the last statement of a script return a program, where it calls a staged function.

    Args:
        script: The script.
        show: What it shows.
        edits: Gets the edits.
        reference: What the value should be, as an expression.
        note: A comment on that, with its line end.

    Returns:
        Whether it is one for sure: one result of one call, of arrays.
    """
    body = script.tree.body
    if len(show.shown) != 1 or show.shown[0].told or len(show.shown[0].values) != 1:
        return False
    (one,) = show.shown
    if one.statement is not body[-1]:
        return False
    value: ast.expr | None = peeled(one.values[0], script.names)
    assigned = None
    if isinstance(value, ast.Name) and len(body) > 1:
        value, assigned = _assigned(script.tree, value.id)
    if not isinstance(value, ast.Call) or not _is_staged(value.func, script):
        return False
    if any(isinstance(node, ast.Starred) for node in value.args) or any(
        keyword.arg is None for keyword in value.keywords
    ):
        return False
    wanted = _wanted(one, edits, script) or reference
    statement = one.statement
    if assigned is not None:
        edits.drop(statement)
        statement = assigned
    _call(edits, statement, value, wanted, note)
    return True


def _wanted(one: Shown, edits: Edits, script: Script) -> str:
    """Return what a value should be, as its script says; empty where it does not."""
    if not isinstance(one.wanted, ast.expr):
        return "" if one.wanted is None else repr(one.wanted)
    made = as_array(one.wanted, one, script.names)
    text = edits.text_of(one.wanted)
    return f"{made}({text})" if made else text


def _assigned(tree: ast.Module, name: str) -> tuple[ast.expr | None, ast.stmt | None]:
    """Return what the last statement but one assigns to a name that is used only once."""
    before = tree.body[-2]
    loads = sum(isinstance(node, ast.Name) and node.id == name for node in ast.walk(tree))
    match before:
        case ast.Assign(targets=[ast.Name(id=target)], value=value):
            if target == name and loads == 2:  # noqa: PLR2004 - once bound, once used
                return value, before
        case _:
            pass
    return None, None


def _call(edits: Edits, statement: ast.stmt, call: ast.Call, wanted: str, note: str) -> None:
    """Replace a statement by the return of a program of its call; what is called stays as it is."""
    at = edits.start(statement)
    edits.replace(at, edits.start(call.func), f"{note}return Program(")
    at, lead = edits.end(call.func), ", args=("
    for argument in call.args:
        edits.replace(at, edits.start(argument), lead)
        at, lead = edits.end(argument), ", "
    end = ",)" if len(call.args) == 1 else ")" if call.args else ""
    if call.keywords:
        lead = f"{end}, kwargs={{"
        for keyword in call.keywords:
            edits.replace(at, edits.start(keyword.value), f'{lead}"{keyword.arg}": ')
            at, lead = edits.end(keyword.value), ", "
        end = "}"
    end += f", reference={wanted}" if wanted else ""
    edits.replace(at, edits.end(statement), f"{end})")


def _is_staged(node: ast.expr, script: Script) -> bool:
    """Say whether a function is certainly a staged one, and called without more ado."""
    if isinstance(node, ast.Call):
        return _stages(node, script.names)
    if not isinstance(node, ast.Name):
        return False
    bindings = [one for one in ast.walk(script.tree) if _binds(one, node.id)]
    if len(bindings) != 1 or bindings[0] not in script.tree.body:
        return False
    match bindings[0]:
        case ast.FunctionDef(decorator_list=[decorator]):
            return _decorates(decorator, script.names)
        case ast.Assign(targets=[ast.Name()], value=ast.Call() as value):
            return _stages(value, script.names)
        case _:
            return False


def _binds(node: ast.AST, name: str) -> bool:
    match node:
        case ast.FunctionDef(name=bound) | ast.ClassDef(name=bound):
            return bound == name
        case ast.Assign(targets=targets):
            return any(isinstance(t, ast.Name) and t.id == name for t in targets)
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
