"""Cuts that several places must agree on: a parameter with its arguments, one of several results.

What maps, differentiates or runs a function is handed tuples as long as the function has
parameters or results: specifications, arguments. So a position is dropped from all of them. Pure.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Final

from conformance.triage.shrink.fold import loads
from conformance.triage.shrink.tree import parameters

if TYPE_CHECKING:
    from conformance.triage.shrink.tree import Tree

PAIR: Final = 2
"""Of so many one is left alone, which is no tuple then."""
Function = ast.FunctionDef | ast.Lambda


def unused_parameters(function: ast.AST) -> list[int]:
    """Return the positions of the parameters that a function does not read."""
    if not isinstance(function, ast.FunctionDef | ast.Lambda):
        return []
    body = function.body if isinstance(function.body, list) else [function.body]
    read = {name for one in body for name in loads(one)}
    return [n for n, one in enumerate(parameters(function)) if one.arg not in read]


def drop_parameter(tree: Tree, function: ast.AST, number: int, *, tuples: bool) -> bool:
    """Drop a parameter with what is handed over for it, in calls and in tuples of that length.

    Args:
        tree: The text.
        function: One that does not read the parameter.
        number: Its position.
        tuples: Whether tuples are looked at.
    """
    count = len(parameters(function))
    dropped = [
        node
        for node in tree.nodes
        if node is function
        or (
            tuples
            and isinstance(node, ast.FunctionDef | ast.Lambda)
            and not getattr(node, "decorator_list", [])
            and len(parameters(node)) == count
            and number in unused_parameters(node)
        )
    ]
    names = {node.name for node in dropped if isinstance(node, ast.FunctionDef)}
    for node in tree.nodes:
        match node:
            case ast.Tuple(elts=elts, ctx=ast.Load()) if tuples and len(elts) == count > 1:
                _without(elts, number)
            case ast.keyword(arg="args", value=ast.Tuple(elts=elts)) if len(elts) == count == 1:
                if tuples:
                    elts.clear()
            case ast.Call(args=args) if len(args) == count and _is_of(node.func, names, dropped):
                _without(args, number)
            case _:
                pass
    for node in dropped:
        assert isinstance(node, ast.FunctionDef | ast.Lambda)  # noqa: S101 - see above
        _drop_argument(node, number)
    return True


def _is_of(called: ast.expr, names: set[str], functions: list[ast.AST]) -> bool:
    """Say whether what is called is one of some functions, maybe wrapped."""
    return any(
        node in functions or (isinstance(node, ast.Name) and node.id in names)
        for node in ast.walk(called)
    )


def _drop_argument(function: Function, number: int) -> None:
    arguments = function.args
    given = [*arguments.posonlyargs, *arguments.args]
    last = len(given) - len(arguments.defaults)
    if number >= last:
        del arguments.defaults[number - last]
    one = given[number]
    arguments.posonlyargs = [arg for arg in arguments.posonlyargs if arg is not one]
    arguments.args = [arg for arg in arguments.args if arg is not one]


def _without(items: list[ast.expr], number: int) -> None:
    if not any(isinstance(one, ast.Starred) for one in items):
        del items[number]


def results(tree: Tree) -> list[int]:
    """Return the lengths of the tuples that functions return."""
    return sorted({len(found.elts) for found in _returned(tree)}, reverse=True)


def _returned(tree: Tree) -> list[ast.Tuple]:
    found = []
    for node in tree.nodes:
        match node:
            case ast.Return(value=ast.Tuple() as value) | ast.Lambda(body=ast.Tuple() as value):
                found.append(value)
            case ast.keyword(arg="out_specs" | "reference", value=ast.Tuple() as value):
                found.append(value)
            case _:
                pass
    return [one for one in found if len(one.elts) > 1]


def drop_output(tree: Tree, count: int, number: int, where: str) -> bool:
    """Drop one of several results from every function that returns as many.

    Args:
        tree: The text.
        count: How many results.
        number: Which one.
        where: Which tuples of that length are cut: empty for those that are returned; `*` for all
            of them, as of what is carried through a loop: made, unpacked and looked into; `+` for
            all but those given by keyword, as specifications are.
    """
    tuples = _returned(tree)
    if where:
        tuples = [
            node
            for node in tree.nodes
            if isinstance(node, ast.Tuple)
            and (where == "*" or not isinstance(tree.parent(node), ast.keyword))
        ]
    for found in tuples:
        if len(found.elts) == count and not any(isinstance(e, ast.Starred) for e in found.elts):
            del found.elts[number]
            if count == PAIR:
                tree.replace(found, found.elts[0])
    for node in tree.nodes if where else []:
        match node:
            case ast.Subscript(
                value=ast.Name() | ast.Call(), slice=ast.Constant(value=int(at)) as index
            ):
                if count == PAIR:
                    tree.replace(node, node.value)
                elif at > number:
                    index.value = at - 1
            case _:
                pass
    return True
