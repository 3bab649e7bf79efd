"""The observables of a script: values that it asserts, prints, exits with, or ends in. Pure."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from conformance.triage.new.script import EXITS
from conformance.triage.new.source import called, walk_own_nodes

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from conformance.triage.new.source import ScriptSource

_PRINTS: Final = frozenset({"print", "pprint.pprint"})
_TESTING: Final = ("numpy.testing.assert_", "jax.numpy.testing.assert_")
_EQUALITIES: Final = tuple(
    f"{module}{name}"
    for module in _TESTING
    for name in ("allclose", "array_", "equal", "almost_equal")
)
"""How assertions begin that compare their first two arguments."""
_CLOSE: Final = frozenset({
    "numpy.allclose", "numpy.array_equal", "jax.numpy.allclose", "jax.numpy.array_equal",
})  # fmt: skip
_PEELED: Final = frozenset({
    "float", "int", "bool", "numpy.asarray", "numpy.array", "jax.device_get",
    "jax.block_until_ready",
})  # fmt: skip
"""Functions that change how a result is shown, not which it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observable:
    """Values that a statement shows.

    Attributes:
        statement: The statement.
        values: The values.
        expected: What they should be: an expression, a plain value for conditions and exits, None
            where nothing says so.
        is_condition: Whether the value is a condition.
        is_swapped: Whether the expected value comes first.
    """

    statement: ast.stmt
    values: Sequence[ast.expr]
    expected: ast.expr | int | None = None
    is_condition: bool = False
    is_swapped: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Observables:
    """All that a script shows.

    Attributes:
        found: The observables, in order.
        silent: Statements that no longer show anything: prints in addition to assertions.
        states: Whether the script says itself what is right.
        tolerances: How far that may be missed, `rtol` and `atol`, where it says so.
    """

    found: Sequence[Observable] = ()
    silent: Sequence[ast.stmt] = ()
    states: bool = False
    tolerances: Mapping[str, float] = field(default_factory=dict)


def find_observables(source: ScriptSource, *, echoes: bool, truth: bool = False) -> Observables:
    """Return what a script shows.

    Args:
        source: The script.
        echoes: Whether expressions are shown.
        truth: Whether assertions are shown as true or false, not by both their sides.
    """
    body, names = source.tree.body, source.names
    statements = [node for node in _reached(source.tree) if isinstance(node, ast.stmt)]
    prints = [node for node in statements if _path(node, names) in _PRINTS]
    asserts = [one for node in statements for one in _asserted(node, names, truth=truth)]
    runs = truth and any(_path(node, names).startswith(_TESTING) for node in statements)
    if asserts or runs:  # that it runs may be all that it asserts
        tolerances = _tolerances(asserts)
        return Observables(found=asserts, silent=prints, states=True, tolerances=tolerances)
    last = body[-1]
    if ended := _exit(last, names):
        return Observables(found=[ended], silent=prints, states=True)
    if echoes:
        found = [one for node in body for one in _echoed(node, names)]
    elif prints:
        found = [one for node in prints for one in _printed(node)]
        found = found or [*_printed(prints[-1], texts=True)]
    elif isinstance(last, ast.Assign) and isinstance(last.targets[0], ast.Name):
        found = [Observable(statement=last, values=[last.value])]
    else:
        found = [*_echoed(last, names)]
    return Observables(found=found)


def _path(node: ast.AST, names: Mapping[str, str]) -> str:
    """Return the dotted path of the function that a statement only calls, empty for none."""
    return called(node.value, names) if isinstance(node, ast.Expr) else ""


def _reached(tree: ast.Module) -> Iterator[ast.AST]:
    """Yield what runs once, outside of functions that jax may trace."""
    plain = _plain_functions(tree)
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            yield from walk_own_nodes(node.body if node.name in plain else ())
        else:
            yield from walk_own_nodes([node])


def _plain_functions(tree: ast.Module) -> set[str]:
    """Return the functions that are only ever called, by nothing but each other and the script."""
    functions = {
        node.name: node.body
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and not node.decorator_list
    }
    loads = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
    ]
    plain = set(functions)
    while True:
        roots = [*tree.body, *(inner for name in plain for inner in functions[name])]
        calls = (node for node in walk_own_nodes(roots) if isinstance(node, ast.Call))
        callees = {call.func for call in calls}
        others = {node.id for node in loads if node not in callees}
        if not plain & others:
            return plain
        plain -= others


def _printed(node: ast.stmt, *, texts: bool = False) -> Iterator[Observable]:
    """Yield what a print shows; the texts in it only if asked for."""
    match node:
        case ast.Expr(value=ast.Call(args=args)):
            values = [one for one in args if texts or not isinstance(one, ast.Constant)]
            if values:
                yield Observable(statement=node, values=values)
        case _:
            pass


def _echoed(node: ast.stmt, names: Mapping[str, str]) -> Iterator[Observable]:
    """Yield what a prompt shows: what is printed, and what expressions give."""
    if _path(node, names) in _PRINTS:
        printed = [*_printed(node)]
        yield from printed or _printed(node, texts=True)
    elif isinstance(node, ast.Expr) and not isinstance(node.value, ast.Constant):
        yield Observable(statement=node, values=[node.value])


def _asserted(node: ast.AST, names: Mapping[str, str], *, truth: bool) -> Iterator[Observable]:
    """Yield what an assertion shows; nothing of another statement."""
    match node:
        case ast.Assert(test=test):
            yield _of_test(node, test, names, truth=truth)
        case ast.Expr(value=ast.Call(args=[value, expected, *more])) if not truth:
            starred = any(isinstance(one, ast.Starred) for one in (value, expected, *more))
            if _path(node, names).startswith(_EQUALITIES) and not starred:
                yield Observable(statement=node, values=[value], expected=expected)
        case _:
            pass


def _of_test(
    node: ast.Assert, test: ast.expr, names: Mapping[str, str], *, truth: bool
) -> Observable:
    match test:
        case ast.Compare(left=left, ops=[ast.Eq()], comparators=[right]) if not truth:
            if _is_literal(left) and not _is_literal(right):
                return Observable(statement=node, values=[right], expected=left, is_swapped=True)
            return Observable(statement=node, values=[left], expected=right)
        case ast.Call(args=[value, expected, *_]) if not truth and called(test, names) in _CLOSE:
            return Observable(statement=node, values=[value], expected=expected)
        case ast.Call(args=[inner]) if called(test, names) == "bool":
            return _of_test(node, inner, names, truth=truth)
        case _:
            return Observable(statement=node, values=[test], expected=True, is_condition=True)


def _tolerances(asserts: Sequence[Observable]) -> dict[str, float]:
    """Return the widest tolerances that assertions state."""
    found: dict[str, float] = {}
    for node in (inner for one in asserts for inner in ast.walk(one.statement)):
        match node:
            case ast.keyword(arg="rtol" | "atol" as name, value=ast.Constant(value=value)):
                if isinstance(value, int | float):
                    found[name] = max(value, found.get(name, 0))
            case _:
                pass
    return found


def side_code(node: ast.expr, one: Observable, source: ScriptSource) -> str:
    """Return a side of an assertion as text: a list that is compared as an array as one.

    Args:
        node: The side.
        one: The assertion.
        source: The script.
    """
    text = source.segment(node)
    if not isinstance(node, ast.List) or isinstance(one.statement, ast.Assert):
        return text
    inner = (ast.List, ast.Tuple, ast.UnaryOp)
    leaves = [n for n in ast.walk(node) if isinstance(n, ast.expr) and not isinstance(n, inner)]
    numbers = all(isinstance(n, ast.Constant) and isinstance(n.value, int | float) for n in leaves)
    numpy = sorted(alias for alias, path in source.names.items() if path == "numpy")
    return f"{numpy[0]}.array({text})" if numbers and numpy else text


def expected_code(one: Observable, source: ScriptSource) -> str:
    """Return what the values of an observable should be as text, empty for nothing.

    Args:
        one: The observable.
        source: The script.
    """
    if isinstance(one.expected, ast.expr):
        return side_code(one.expected, one, source)
    return "" if one.expected is None else repr(one.expected)


def _is_literal(node: ast.expr) -> bool:
    try:
        ast.literal_eval(node)
    except (ValueError, TypeError):
        return False
    return True


def _exit(node: ast.stmt, names: Mapping[str, str]) -> Observable | None:
    """Return what a last `sys.exit(...)` shows; None for another statement, or a plain exit."""
    if _path(node, names) not in EXITS:
        return None
    match node:
        case ast.Expr(value=ast.Call(args=[ast.IfExp(test=test, body=ast.Constant(value=good))])):
            expected = good in {0, None}
        case ast.Expr(value=ast.Call(args=[ast.UnaryOp(op=ast.Not(), operand=test)])):
            expected = True
        case ast.Expr(value=ast.Call(args=[value])) if not isinstance(value, ast.Constant):
            return Observable(statement=node, values=[value], expected=0)
        case _:
            return None
    return Observable(statement=node, values=[test], expected=expected, is_condition=True)


def peel(node: ast.expr, names: Mapping[str, str]) -> ast.expr:
    """Return a result without what only changes how it is shown.

    Args:
        node: `float(f(x))`, `f(x).block_until_ready()`.
        names: What imported names stand for.
    """
    match node:
        case ast.Call(args=[inner], keywords=[]) if called(node, names) in _PEELED:
            return peel(inner, names)
        case ast.Call(func=ast.Attribute(value=inner, attr="block_until_ready"), args=[]):
            return peel(inner, names)
        case _:
            return node
