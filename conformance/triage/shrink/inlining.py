"""Functions and names in the place where they are used. Pure.

A function comes in the place of its calls where they are calls of its name: its statements before
the statement of the call, what it returns in the place of the call.
"""

from __future__ import annotations

import ast
import copy
import itertools
from inspect import Parameter, Signature
from typing import TYPE_CHECKING

from conformance.triage.shrink.bindings import loads, own_nodes, parameters, stores

if TYPE_CHECKING:
    from conformance.triage.shrink.tree import Changes, Tree

LATER = ast.Lambda | ast.ListComp | ast.GeneratorExp | ast.DictComp | ast.SetComp | ast.IfExp
"""Expressions whose parts are computed later, or often."""
LEAVING = ast.Return | ast.Yield | ast.YieldFrom | ast.Await | ast.Global | ast.Nonlocal


def inlined_name(tree: Tree, node: ast.AST) -> Changes | None:
    """Return the changes that put a value in the one place where its name is read.

    Args:
        tree: The code.
        node: The assignment `name = value`.

    Returns:
        The changes; None if it is no such assignment.
    """
    match node:
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            pass
        case _:
            return None
    kinds = ast.FunctionDef | ast.Module | ast.ClassDef
    scope = next(one for one in tree.above(node) if isinstance(one, kinds))
    reads = [one for one in tree.reads(name) if scope in tree.above(one)]
    if len(reads) != 1 or stores(scope)[name] != 1 or node is tree.statement(reads[0]):
        return None
    return {reads[0]: [value], node: []}


def inlined_function(tree: Tree, node: ast.AST) -> Changes | None:
    """Return the changes that put a function in the place of its calls.

    Args:
        tree: The code.
        node: Its definition.

    Returns:
        The changes; None unless every use is a call, and its one `return` is its last statement.
    """
    if not isinstance(node, ast.FunctionDef) or node.decorator_list or not _returns_last(node):
        return None
    uses = tree.reads(node.name)
    parents = [tree.parent(one) for one in uses if tree.field(one) == "func"]
    calls = [one for one in parents if isinstance(one, ast.Call)]
    is_called = len(calls) == len(uses) and stores(tree.root)[node.name] == 1
    if not calls or not is_called or (len(node.body) > 1 and len(calls) > 1):
        return None
    changes: dict[ast.AST, list[ast.AST]] = {node: []}
    for call in calls:
        values = _arguments(node, call)
        if values is None or not _put_in_place(tree, node, call, values, changes):
            return None
    return changes


def _returns_last(function: ast.FunctionDef) -> bool:
    *body, last = function.body
    inner = own_nodes(ast.Module(body=body, type_ignores=[]))
    return (
        isinstance(last, ast.Return)
        and last.value is not None
        and not (function.args.vararg or function.args.kwarg)
        and not any(isinstance(one, LEAVING) for one in inner)
    )


def _put_in_place(
    tree: Tree,
    function: ast.FunctionDef,
    call: ast.Call,
    values: dict[str, ast.expr],
    changes: dict[ast.AST, list[ast.AST]],
) -> bool:
    """Add the changes for one call; say whether that is possible."""
    copied = copy.deepcopy(function)
    *body, last = copied.body
    reads, rebound = loads(copied), stores(ast.Module(body=copied.body, type_ignores=[]))
    filled = {
        name
        for name, value in values.items()
        if name not in rebound
        and (isinstance(value, ast.Name | ast.Constant) or (not body and reads[name] <= 1))
    }
    caller = next((o for o in tree.above(call) if isinstance(o, ast.FunctionDef)), tree.root)
    free = {name for value in values.values() for name in loads(value)}
    own, taken = set(stores(copied)) - {function.name} - filled, {*stores(caller), *free}
    renamed = {name: _fresh(name, taken | own) for name in own & taken}
    for one in ast.walk(copied):
        match one:
            case ast.Name(id=name, ctx=ast.Load()) if name in filled:
                changes[one] = [values[name]]
            case ast.Name(id=name):
                one.id = renamed.get(name, name)
            case ast.arg(arg=name):
                one.arg = renamed.get(name, name)
            case ast.FunctionDef(name=name):
                one.name = renamed.get(name, name)
            case _:
                pass
    bound = [
        ast.Assign(targets=[ast.Name(id=renamed.get(name, name), ctx=ast.Store())], value=value)
        for name, value in values.items()
        if name not in filled
    ]
    assert isinstance(last, ast.Return)  # noqa: S101 - see _returns_last
    assert last.value is not None  # noqa: S101
    changes[call] = [last.value]
    statement = tree.statement(call)
    if before := [*bound, *body]:
        changes[statement] = [*before, *changes.get(statement, [statement])]
    return not before or not _is_computed_later(tree, call, statement)


def _is_computed_later(tree: Tree, call: ast.Call, statement: ast.AST) -> bool:
    """Say whether a call is computed later than what comes before its statement, or often."""
    around = itertools.takewhile(lambda one: one is not statement, tree.above(call))
    often = isinstance(statement, ast.While | ast.For | ast.FunctionDef)
    return often or any(isinstance(one, LATER) for one in around)


def _arguments(function: ast.FunctionDef, call: ast.Call) -> dict[str, ast.expr] | None:
    """Return the value of each parameter in a call; None if that is not known."""
    arguments, given = function.args, parameters(function)
    missing = [Parameter.empty] * (len(given) - len(arguments.defaults))
    positional = zip(given, [*missing, *arguments.defaults], strict=True)
    keyword_only = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    signature = Signature(
        [
            *(
                Parameter(one.arg, Parameter.POSITIONAL_OR_KEYWORD, default=d)
                for one, d in positional
            ),
            *(
                Parameter(one.arg, Parameter.KEYWORD_ONLY, default=d or Parameter.empty)
                for one, d in keyword_only
            ),
        ]
    )
    if any(isinstance(one, ast.Starred) for one in call.args):
        return None
    try:
        bound = signature.bind(*call.args, **{str(one.arg): one.value for one in call.keywords})
    except TypeError:
        return None
    bound.apply_defaults()
    return bound.arguments


def _fresh(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    return name
