"""Functions and names put where they are used. Pure.

A function is put in the place of its calls where they are calls of its name: its statements before
the statement of the call, what it returns in the place of the call.
"""

from __future__ import annotations

import ast
import copy
from typing import TYPE_CHECKING

from conformance.triage.shrink.fold import loads, stores
from conformance.triage.shrink.tree import parameters

if TYPE_CHECKING:
    from conformance.triage.shrink.tree import Tree


def inline_name(tree: Tree, node: ast.AST) -> bool:
    """Put what a name is bound to in the one place where it is read.

    Args:
        tree: The text.
        node: `name = value`.
    """
    match node:
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            pass
        case _:
            return False
    scope = _scope(tree, node)
    reads = [
        one
        for one in ast.walk(scope)
        if isinstance(one, ast.Name) and one.id == name and isinstance(one.ctx, ast.Load)
    ]
    if len(reads) != 1 or stores(scope)[name] != 1 or node is tree.statement(reads[0]):
        return False
    tree.replace(reads[0], value)
    return tree.remove(node)


def _scope(tree: Tree, node: ast.AST) -> ast.AST:
    kinds = ast.FunctionDef | ast.Module | ast.ClassDef
    return next(one for one in tree.above(node) if isinstance(one, kinds))


def inline_function(tree: Tree, node: ast.AST) -> bool:
    """Put a function in the place of its calls.

    Args:
        tree: The text.
        node: Its definition.

    Returns:
        Whether that is possible: every use is a call, and its one `return` is its last statement.
    """
    if not isinstance(node, ast.FunctionDef) or node.decorator_list or not _returns_last(node):
        return False
    uses = [
        one
        for one in tree.nodes
        if isinstance(one, ast.Name) and one.id == node.name and isinstance(one.ctx, ast.Load)
    ]
    calls = [tree.parent(one) for one in uses if tree.field(one) == "func"]
    if not calls or len(calls) != len(uses) or stores(tree.root)[node.name] != 1:
        return False
    made = [one for one in calls if isinstance(one, ast.Call)]
    if len(node.body) > 1 and len(made) > 1:
        return False
    return all(_inlined(tree, node, call) for call in made) and tree.remove(node)


def _returns_last(function: ast.FunctionDef) -> bool:
    arguments = function.args
    if arguments.vararg or arguments.kwarg:
        return False
    left = (ast.Return, ast.Yield, ast.YieldFrom, ast.Await, ast.Global, ast.Nonlocal)
    inner = [one for body in function.body[:-1] for one in _own(body)]
    last = function.body[-1]
    return (
        isinstance(last, ast.Return)
        and last.value is not None
        and not any(isinstance(one, left) for one in inner)
    )


def _own(node: ast.AST) -> list[ast.AST]:
    """Return the nodes of a statement, but for those of functions in it."""
    found, pending = [], [node]
    while pending:
        one = pending.pop()
        found.append(one)
        if not isinstance(one, ast.FunctionDef | ast.Lambda):
            pending += ast.iter_child_nodes(one)
    return found


def _inlined(tree: Tree, function: ast.FunctionDef, call: ast.Call) -> bool:
    values = _arguments(function, call)
    if values is None:
        return False
    if not all(parents_on_the_way(tree, call, function, values)):
        return False
    copied = copy.deepcopy(function)
    caller = next((o for o in tree.above(call) if isinstance(o, ast.FunctionDef)), tree.root)
    taken = set(stores(caller))
    own = set(stores(copied)) - {function.name}
    bound: list[ast.stmt] = []
    filled: dict[str, ast.expr] = {}
    reads = loads(copied)
    rebound = stores(ast.Module(body=copied.body, type_ignores=[]))
    for name, value in values.items():
        simple = isinstance(value, ast.Name | ast.Constant)
        # An expression is computed where it stood: not in a function that the body defines.
        direct = sum(n.id == name for s in copied.body for n in _own(s) if isinstance(n, ast.Name))
        if name not in rebound and (simple or (reads[name] <= 1 and direct == reads[name])):
            filled[name] = value
            own.discard(name)
        else:
            target = ast.Name(id=name, ctx=ast.Store())
            bound.append(ast.Assign(targets=[target], value=value))
    free = {one for value in values.values() for one in loads(value)}
    clash = {name for name in own if name in taken | free}
    renamed = {name: _fresh(name, taken | own | free) for name in clash}
    body = [*bound, *copied.body]
    # The values of parameters mean what they do at the call: they are not renamed.
    body = [
        _Put(filled, renamed).visit(one) if number >= len(bound) else _target(one, renamed)
        for number, one in enumerate(body)
    ]
    last = body.pop()
    assert isinstance(last, ast.Return)  # noqa: S101 - see _returns_last
    assert last.value is not None  # noqa: S101
    tree.replace(call, last.value)
    statement = tree.statement(call)
    return not body or tree.replace_statement(statement, [*body, statement])  # type: ignore[list-item]


def parents_on_the_way(
    tree: Tree, call: ast.Call, function: ast.FunctionDef, values: dict[str, ast.expr]
) -> list[bool]:
    """Return whether a call may be put apart: not within what is computed later, or often."""
    if len(function.body) == 1 and all(
        isinstance(v, ast.Name | ast.Constant) or loads(function)[n] <= 1 for n, v in values.items()
    ):
        return [True]
    later = ast.Lambda | ast.ListComp | ast.GeneratorExp | ast.DictComp | ast.SetComp | ast.IfExp
    statement = tree.statement(call)
    way = []
    for one in tree.above(call):
        if one is statement:
            break
        way.append(not isinstance(one, later))
    repeated = isinstance(statement, ast.While | ast.For | ast.FunctionDef)
    return [*way, not repeated]


def _target(node: ast.stmt, renamed: dict[str, str]) -> ast.stmt:
    assert isinstance(node, ast.Assign)  # noqa: S101 - one of ours
    assert isinstance(node.targets[0], ast.Name)  # noqa: S101
    name = node.targets[0].id
    node.targets[0].id = renamed.get(name, name)
    return node


def _arguments(function: ast.FunctionDef, call: ast.Call) -> dict[str, ast.expr] | None:
    """Return the value of each parameter in a call; None if that cannot be told."""
    given = parameters(function)
    if len(call.args) > len(given) or any(isinstance(one, ast.Starred) for one in call.args):
        return None
    if any(one.arg is None for one in call.keywords):
        return None
    arguments = function.args
    values: dict[str, ast.expr] = {}
    for one, default in zip(reversed(given), reversed(arguments.defaults), strict=False):
        values[one.arg] = default
    for one, default_or_none in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        if default_or_none is not None:
            values[one.arg] = default_or_none
    values |= {one.arg: value for one, value in zip(given, call.args, strict=False)}
    values |= {str(one.arg): one.value for one in call.keywords}
    names = {one.arg for one in (*given, *arguments.kwonlyargs)}
    return values if set(values) == names else None


def _fresh(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    return name


class _Put(ast.NodeTransformer):
    """Puts values in the place of parameters, and other names in that of names."""

    def __init__(self, values: dict[str, ast.expr], names: dict[str, str]) -> None:
        self._values, self._names = values, names

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if isinstance(node.ctx, ast.Load) and node.id in self._values:
            return copy.deepcopy(self._values[node.id])
        node.id = self._names.get(node.id, node.id)
        return node

    def visit_arg(self, node: ast.arg) -> ast.arg:
        node.arg = self._names.get(node.arg, node.arg)
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        node.name = self._names.get(node.name, node.name)
        self.generic_visit(node)
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.Lambda:
        inner = {one.arg for one in ast.walk(node.args) if isinstance(one, ast.arg)}
        values = {name: value for name, value in self._values.items() if name not in inner}
        _Put(values, self._names).generic_visit(node)
        return node
