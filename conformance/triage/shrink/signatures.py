"""Cuts that several places must agree on: a parameter with its arguments, one of several results.

What maps, differentiates or runs a function is handed tuples as long as the function has
parameters or results: specifications, arguments. So a position is dropped from all of them. Pure.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Final

from conformance.triage.shrink.bindings import loads, parameters

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from conformance.triage.shrink.tree import Changes, Tree

PAIR: Final = 2
"""Of so many one is left alone, which is no tuple then."""


def unused_parameters(function: ast.AST) -> list[int]:
    """Return the positions of the parameters that a function does not read."""
    given = parameters(function)
    body = getattr(function, "body", [])
    read = {name for one in (body if isinstance(body, list) else [body]) for name in loads(one)}
    return [n for n, one in enumerate(given) if one.arg not in read]


def without_parameter(tree: Tree, function: ast.AST, number: int, *, tuples: bool) -> Changes:
    """Return the changes that drop a parameter with its argument, in calls and maybe in tuples.

    Args:
        tree: The code.
        function: A function that does not read the parameter.
        number: Its position.
        tuples: Whether it is also dropped from tuples of that length, and from functions without
            a decorator that take as many parameters.
    """
    count = len(parameters(function))
    functions = [
        node
        for node in tree.nodes
        if isinstance(node, ast.FunctionDef | ast.Lambda)
        and (node is function or (tuples and _is_like(node, count, number)))
    ]
    names = {node.name for node in functions if isinstance(node, ast.FunctionDef)}
    changes: dict[ast.AST, list[ast.AST]] = {}
    for node in tree.nodes:
        match node:
            case ast.Tuple(elts=elts, ctx=ast.Load()) if tuples and len(elts) == count > 1:
                changes |= _without(elts, number)
            case ast.keyword(arg="args", value=ast.Tuple(elts=[one])) if tuples and count == 1:
                changes[one] = []
            case ast.Call(func=func, args=args) if len(args) == count:
                called = ast.walk(func)
                if any(one in functions or getattr(one, "id", "") in names for one in called):
                    changes |= _without(args, number)
            case _:
                pass
    for taker in functions:
        changes[parameters(taker)[number]] = []
        if number >= (last := count - len(taker.args.defaults)):
            changes[taker.args.defaults[number - last]] = []
    return changes


def _is_like(function: ast.FunctionDef | ast.Lambda, count: int, number: int) -> bool:
    """Say whether a function has as many parameters, one of them unread, and no decorator."""
    given, decorators = parameters(function), getattr(function, "decorator_list", [])
    return not decorators and len(given) == count and number in unused_parameters(function)


def _without(items: list[ast.expr], number: int) -> dict[ast.AST, list[ast.AST]]:
    return {} if any(isinstance(one, ast.Starred) for one in items) else {items[number]: []}


def lengths_of_results(tree: Tree) -> list[int]:
    """Return the lengths of the tuples that functions return, the longest first."""
    return sorted({len(found.elts) for found in _returned(tree)}, reverse=True)


def _returned(tree: Tree) -> Iterator[ast.Tuple]:
    for node in tree.nodes:
        match node:
            case (
                ast.Return(value=ast.Tuple() as value)
                | ast.Lambda(body=ast.Tuple() as value)
                | ast.keyword(arg="out_specs" | "reference", value=ast.Tuple() as value)
            ) if len(value.elts) > 1:
                yield value
            case _:
                pass


def without_result(tree: Tree, count: int, number: int, where: str) -> Changes:
    """Return the changes that drop one of several results from every function with as many.

    Args:
        tree: The code.
        count: How many results.
        number: Which one.
        where: Which tuples of that length are cut: empty for those that are returned; `*` for all
            of them, as of what is carried through a loop: made, unpacked and looked into; `+` for
            all but those given by keyword, as specifications are.
    """
    tuples: Iterable[ast.Tuple] = _returned(tree)
    if where:
        every = (node for node in tree.nodes if isinstance(node, ast.Tuple))
        tuples = (
            one for one in every
            if where == "*" or not isinstance(tree.parent(one), ast.keyword)
        )  # fmt: skip
    changes: dict[ast.AST, list[ast.AST]] = {}
    for found in tuples:
        if len(found.elts) == count and (dropped := _without(found.elts, number)):
            changes |= {found: [found.elts[1 - number]]} if count == PAIR else dropped
    for node in tree.nodes if where else []:
        match node:
            case ast.Subscript(
                value=ast.Name() | ast.Call(), slice=ast.Constant(value=int(at)) as index
            ):
                if count == PAIR:
                    changes[node] = [node.value]
                elif at > number:
                    changes[index] = [ast.Constant(value=at - 1)]
            case _:
                pass
    return changes
