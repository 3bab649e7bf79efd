"""What a script shows: what it asserts, prints, exits with, or has at its end. Pure."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Final

from conformance.triage.new.names import called, own_nodes
from conformance.triage.new.script import EXITS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from conformance.triage.new.script import Script

BOTH: Final = 2
_TESTING: Final = ("numpy.testing.assert_", "jax.numpy.testing.assert_")
_CLOSE: Final = frozenset({
    f"{module}.{name}"
    for module in ("numpy", "jax.numpy")
    for name in ("allclose", "array_equal")
})  # fmt: skip
_PEELED: Final = frozenset({
    "float", "int", "bool", "numpy.asarray", "numpy.array", "jax.device_get",
    "jax.block_until_ready",
})  # fmt: skip
"""What changes how a result is shown, not which it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """Something that a script shows.

    Attributes:
        statement: The statement that shows it.
        values: What is shown.
        wanted: What it should be, a plain value for conditions and exits; None where nothing says
            so.
        told: Whether the value is a condition, to be shown as such.
    """

    statement: ast.stmt
    values: tuple[ast.expr, ...]
    wanted: ast.expr | int | None = None
    told: bool = False

    @property
    def in_order(self) -> tuple[ast.expr, ...]:
        """What stands in the script, in its order: the values, and what they should be."""
        nodes = (*self.values, *([self.wanted] if isinstance(self.wanted, ast.expr) else []))
        return tuple(sorted(nodes, key=lambda node: (node.lineno, node.col_offset)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Show:
    """All that a script shows.

    Attributes:
        shown: It, in order.
        silent: Statements that no longer show anything: prints beside assertions.
        states: Whether the script says itself what is right.
        tolerances: How far that may be missed, `rtol` and `atol`, where it says so.
    """

    shown: tuple[Shown, ...]
    silent: tuple[ast.stmt, ...] = ()
    states: bool = False
    tolerances: Mapping[str, float] = field(default_factory=dict)


def show_of(script: Script, *, truth: bool = False) -> Show:
    """Return what a script shows.

    Args:
        script: The script.
        truth: Whether assertions are shown as true or false, not by both their sides.
    """
    statements = [node for node in _reached(script) if isinstance(node, ast.stmt)]
    prints = tuple(node for node in statements if _is_print(node, script.names))
    asserts = tuple(filter(None, (_asserted(s, script.names, truth=truth) for s in statements)))
    runs = truth and any(map(partial(_tests, names=script.names), statements))
    if asserts or runs:  # that it runs may be all that it asserts
        stated = _tolerances(asserts)
        return Show(shown=asserts, silent=prints, states=True, tolerances=stated)
    last = script.tree.body[-1]
    if (ended := _exit(last, script.names)) is not None:
        return Show(shown=(ended,), silent=prints, states=True)
    if script.echoes:
        return Show(shown=tuple(_echoed(script.tree, script.names)))
    if prints:
        return Show(shown=_printed(prints))
    named = isinstance(last, ast.Assign) and isinstance(last.targets[0], ast.Name)
    if named or (isinstance(last, ast.Expr) and not isinstance(last.value, ast.Constant)):
        assert isinstance(last, ast.Assign | ast.Expr)  # noqa: S101 - see above
        return Show(shown=(Shown(statement=last, values=(last.value,)),))
    return Show(shown=())


def _reached(script: Script) -> Iterator[ast.AST]:
    """Yield what runs once, outside of functions that jax may trace."""
    plain = _plain_functions(script.tree)
    for node in script.tree.body:
        yield from own_nodes(node) if not _is_scope(node) else ()
        if isinstance(node, ast.FunctionDef) and node.name in plain:
            for inner in node.body:
                yield from own_nodes(inner) if not _is_scope(inner) else ()


def _is_scope(node: ast.stmt) -> bool:
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)


def _plain_functions(tree: ast.Module) -> set[str]:
    """Return the functions that are only ever called, by nothing but each other and the script."""
    functions = {
        node.name: node
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and not node.decorator_list
    }
    plain = set(functions)
    while True:
        roots = [node for node in tree.body if not _is_scope(node)]
        roots += [inner for name in plain for inner in functions[name].body]
        callees = {
            id(one.func)
            for root in roots
            if not _is_scope(root)
            for one in own_nodes(root)
            if isinstance(one, ast.Call)
        }
        other = {
            one.id
            for one in ast.walk(tree)
            if isinstance(one, ast.Name)
            and isinstance(one.ctx, ast.Load)
            and id(one) not in callees
        }
        if not plain & other:
            return plain
        plain -= other


def _is_print(node: ast.stmt, names: Mapping[str, str]) -> bool:
    return isinstance(node, ast.Expr) and called(node.value, names) in {"print", "pprint.pprint"}


def _printed(prints: tuple[ast.stmt, ...]) -> tuple[Shown, ...]:
    """Return what prints show; what they only say beside it does not count."""
    found = []
    for statement in prints:
        assert isinstance(statement, ast.Expr)  # noqa: S101 - see _is_print
        assert isinstance(statement.value, ast.Call)  # noqa: S101 - see _is_print
        values = [one for one in statement.value.args if not isinstance(one, ast.Constant)]
        if values:
            found.append(Shown(statement=statement, values=tuple(values)))
    if found:
        return tuple(found)
    last = prints[-1]
    assert isinstance(last, ast.Expr)  # noqa: S101 - see _is_print
    assert isinstance(last.value, ast.Call)  # noqa: S101 - see _is_print
    return (Shown(statement=last, values=tuple(last.value.args)),) if last.value.args else ()


def _echoed(tree: ast.Module, names: Mapping[str, str]) -> Iterator[Shown]:
    """Yield what prompts show: what is printed, and what expressions give."""
    for node in tree.body:
        if _is_print(node, names):
            yield from _printed((node,))
        elif isinstance(node, ast.Expr) and not isinstance(node.value, ast.Constant):
            yield Shown(statement=node, values=(node.value,))


def _tests(node: ast.stmt, names: Mapping[str, str]) -> bool:
    return isinstance(node, ast.Expr) and called(node.value, names).startswith(_TESTING)


def _asserted(node: ast.stmt, names: Mapping[str, str], *, truth: bool) -> Shown | None:
    """Return what an assertion shows, None where a statement is none."""
    if isinstance(node, ast.Assert):
        return _of_test(node, node.test, names, truth=truth)
    path = called(node.value, names) if isinstance(node, ast.Expr) else ""
    if truth or not path.startswith(_TESTING):
        return None
    assert isinstance(node, ast.Expr)  # noqa: S101 - it has a path
    assert isinstance(node.value, ast.Call)  # noqa: S101 - it has a path
    given = node.value.args
    equal = path.rpartition("assert_")[2].startswith(
        ("allclose", "array_", "equal", "almost_equal")
    )
    if not equal or len(given) < BOTH or any(isinstance(one, ast.Starred) for one in given):
        return None
    return Shown(statement=node, values=(given[0],), wanted=given[1])


def _of_test(node: ast.Assert, test: ast.expr, names: Mapping[str, str], *, truth: bool) -> Shown:
    match test:
        case ast.Compare(left=left, ops=[ast.Eq()], comparators=[right]) if not truth:
            swapped = _is_literal(left) and not _is_literal(right)
            value, wanted = (right, left) if swapped else (left, right)
            return Shown(statement=node, values=(value,), wanted=wanted)
        case ast.Call(args=[value, wanted, *_]) if not truth and called(test, names) in _CLOSE:
            return Shown(statement=node, values=(value,), wanted=wanted)
        case ast.Call(args=[inner]) if called(test, names) == "bool":
            return _of_test(node, inner, names, truth=truth)
        case _:
            return Shown(statement=node, values=(test,), wanted=True, told=True)


def _tolerances(asserts: tuple[Shown, ...]) -> dict[str, float]:
    """Return the widest tolerances that assertions state."""
    found: dict[str, float] = {}
    for one in asserts:
        for node in ast.walk(one.statement):
            if isinstance(node, ast.keyword) and node.arg in {"rtol", "atol"}:
                value = node.value.value if isinstance(node.value, ast.Constant) else None
                if isinstance(value, int | float):
                    found[node.arg] = max(value, found.get(node.arg, 0))
    return found


def as_array(node: ast.expr, one: Shown, names: Mapping[str, str]) -> str:
    """Return the function that makes an array of a list, which an assertion compares as one.

    Args:
        node: A side of an assertion.
        one: The assertion.
        names: What imported names stand for.

    Returns:
        E.g. `np.array`; empty where a side stays as it is.
    """
    if not isinstance(node, ast.List) or isinstance(one.statement, ast.Assert):
        return ""
    inner = (ast.List, ast.Tuple, ast.UnaryOp)
    leaves = [n for n in ast.walk(node) if isinstance(n, ast.expr) and not isinstance(n, inner)]
    numbers = all(isinstance(n, ast.Constant) and isinstance(n.value, int | float) for n in leaves)
    numpy = sorted(alias for alias, path in names.items() if path == "numpy")
    return f"{numpy[0]}.array" if numbers and numpy else ""


def _is_literal(node: ast.expr) -> bool:
    try:
        ast.literal_eval(node)
    except (ValueError, TypeError):
        return False
    return True


def _exit(node: ast.stmt, names: Mapping[str, str]) -> Shown | None:
    """Return what a last `sys.exit(...)` shows; None for another statement, or a plain exit."""
    if not isinstance(node, ast.Expr) or called(node.value, names) not in EXITS:
        return None
    match node.value:
        case ast.Call(args=[ast.IfExp(test=test, body=ast.Constant(value=good))]):
            return Shown(statement=node, values=(test,), wanted=good in {0, None}, told=True)
        case ast.Call(args=[ast.UnaryOp(op=ast.Not(), operand=test)]):
            return Shown(statement=node, values=(test,), wanted=True, told=True)
        case ast.Call(args=[value]) if not isinstance(value, ast.Constant):
            return Shown(statement=node, values=(value,), wanted=0)
        case _:
            return None


def peeled(node: ast.expr, names: Mapping[str, str]) -> ast.expr:
    """Return a result without what only changes how it is shown.

    Args:
        node: `float(f(x))`, `f(x).block_until_ready()`.
        names: What imported names stand for.
    """
    match node:
        case ast.Call(args=[inner], keywords=[]) if called(node, names) in _PEELED:
            return peeled(inner, names)
        case ast.Call(func=ast.Attribute(value=inner, attr="block_until_ready"), args=[]):
            return peeled(inner, names)
        case _:
            return node
