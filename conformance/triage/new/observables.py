"""The observables of a script: the values that it asserts, prints, exits with or ends in. Pure."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from conformance.triage.new.script import EXITS
from conformance.triage.new.script_source import resolve_callee, walk_own_nodes

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from conformance.triage.new.script_source import ScriptSource

_PRINTS: Final = frozenset({"print", "pprint.pprint"})
_TESTING: Final = ("numpy.testing.assert_", "jax.numpy.testing.assert_")
_EQUALITIES: Final = tuple(
    f"{module}{name}"
    for module in _TESTING
    for name in ("allclose", "array_", "equal", "almost_equal")
)
"""Prefixes of the assertions that compare their first two arguments."""
_CLOSE: Final = frozenset({
    "numpy.allclose", "numpy.array_equal", "jax.numpy.allclose", "jax.numpy.array_equal",
})  # fmt: skip
_CONVERSIONS: Final = frozenset({
    "float", "int", "bool", "numpy.asarray", "numpy.array", "jax.device_get",
    "jax.block_until_ready",
})  # fmt: skip
"""Functions that change how a result is shown, not its value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observable:
    """The values that a statement shows.

    Attributes:
        statement: The statement.
        values: The values.
        expected: The expected values: an expression; a constant for conditions and exits; None
            where the script states none.
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
    """All values that a script shows.

    Attributes:
        found: The observables, in order.
        silenced: Statements that show nothing in the case: prints in addition to assertions.
        states_reference: Whether the script itself states the expected values.
        tolerances: The tolerances that it states, `rtol` and `atol`.
    """

    found: Sequence[Observable] = ()
    silenced: Sequence[ast.stmt] = ()
    states_reference: bool = False
    tolerances: Mapping[str, float] = field(default_factory=dict)


def find_observables(
    source: ScriptSource, *, echoes: bool, as_conditions: bool = False
) -> Observables:
    """Return the values that a script shows.

    Args:
        source: The script.
        echoes: Whether the values of expressions are shown.
        as_conditions: Whether an assertion shows true or false, not both its sides.
    """
    body, names = source.tree.body, source.names
    statements = [node for node in _walk_executed(source.tree) if isinstance(node, ast.stmt)]
    # Functions of jax that print while a program runs are no `print`: the harness observes results.
    prints = [node for node in statements if _statement_callee(node, names) in _PRINTS]
    asserts = [
        observable
        for node in statements
        for observable in _find_asserted(node, names, as_conditions=as_conditions)
    ]
    # An assertion of numpy.testing is no condition: the case shows that it passes by running.
    only_runs = as_conditions and any(
        _statement_callee(node, names).startswith(_TESTING) for node in statements
    )
    if asserts or only_runs:
        return Observables(
            found=asserts, silenced=prints, states_reference=True, tolerances=_tolerances(asserts)
        )
    last = body[-1]
    # Before prints: a status states what is right, a print does not.
    if exit_status := _find_exit_status(last, names):
        return Observables(found=[exit_status], silenced=prints, states_reference=True)
    if echoes:
        found = [observable for node in body for observable in _find_echoed(node, names)]
    elif prints:
        found = [observable for node in prints for observable in _find_printed(node)]
        # A script that prints only texts shows the last of them.
        found = found or [*_find_printed(prints[-1], labels=True)]
    elif isinstance(last, ast.Assign) and isinstance(last.targets[0], ast.Name):
        found = [Observable(statement=last, values=[last.value])]
    else:
        found = [*_find_echoed(last, names)]
    return Observables(found=found)


def _statement_callee(node: ast.AST, names: Mapping[str, str]) -> str:
    """Return the dotted path of the function that a statement only calls, empty for none."""
    return resolve_callee(node.value, names) if isinstance(node, ast.Expr) else ""


def _walk_executed(tree: ast.Module) -> Iterator[ast.AST]:
    """Yield nodes outside of functions that jax may trace: a tracer cannot be observed."""
    untraced = _find_untraced_functions(tree)
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            # An untraced function runs as plain Python, whenever it is called.
            yield from walk_own_nodes(node.body if node.name in untraced else ())
        else:
            yield from walk_own_nodes([node])


def _find_untraced_functions(tree: ast.Module) -> set[str]:
    """Return the functions that are only called, by each other and by the script itself."""
    functions = {
        node.name: node.body
        for node in tree.body
        # A decorator may trace the function: `@jax.jit`.
        if isinstance(node, ast.FunctionDef) and not node.decorator_list
    }
    loads = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
    ]
    untraced = set(functions)
    # A function called from one that may be traced may be traced too: repeat until none is left.
    while True:
        roots = [*tree.body, *(inner for name in untraced for inner in functions[name])]
        callees = {node.func for node in walk_own_nodes(roots) if isinstance(node, ast.Call)}
        others = {node.id for node in loads if node not in callees}
        if not untraced & others:
            return untraced
        untraced -= others


def _find_printed(node: ast.stmt, *, labels: bool = False) -> Iterator[Observable]:
    """Yield the values that a print shows, optionally with its constants."""
    match node:
        case ast.Expr(value=ast.Call(args=args)):
            values = [value for value in args if labels or not isinstance(value, ast.Constant)]
            if values:
                yield Observable(statement=node, values=values)
        case _:
            pass


def _find_echoed(node: ast.stmt, names: Mapping[str, str]) -> Iterator[Observable]:
    """Yield the values that a prompt shows: printed ones, and values of expressions."""
    if _statement_callee(node, names) in _PRINTS:
        yield from [*_find_printed(node)] or _find_printed(node, labels=True)
    elif isinstance(node, ast.Expr) and not isinstance(node.value, ast.Constant):
        yield Observable(statement=node, values=[node.value])


def _find_asserted(
    node: ast.AST, names: Mapping[str, str], *, as_conditions: bool
) -> Iterator[Observable]:
    """Yield the values that a statement asserts."""
    match node:
        case ast.Assert(test=test):
            yield _read_test(node, test, names, as_conditions=as_conditions)
        case ast.Expr(value=ast.Call(args=[value, expected, *more])) if not as_conditions:
            # `assert_equal(*pair)` has no two sides to read.
            is_starred = any(isinstance(part, ast.Starred) for part in (value, expected, *more))
            if _statement_callee(node, names).startswith(_EQUALITIES) and not is_starred:
                yield Observable(statement=node, values=[value], expected=expected)
        case _:
            pass


def _read_test(
    node: ast.Assert, test: ast.expr, names: Mapping[str, str], *, as_conditions: bool
) -> Observable:
    match test:
        # Other comparisons state no expected value.
        case ast.Compare(left=left, ops=[ast.Eq()], comparators=[right]) if not as_conditions:
            if _is_literal(left) and not _is_literal(right):
                return Observable(statement=node, values=[right], expected=left, is_swapped=True)
            return Observable(statement=node, values=[left], expected=right)
        case ast.Call(args=[value, expected, *_]) if (
            not as_conditions and resolve_callee(test, names) in _CLOSE
        ):
            return Observable(statement=node, values=[value], expected=expected)
        case ast.Call(args=[inner]) if resolve_callee(test, names) == "bool":
            return _read_test(node, inner, names, as_conditions=as_conditions)
        case _:
            return Observable(statement=node, values=[test], expected=True, is_condition=True)


def _tolerances(asserts: Sequence[Observable]) -> dict[str, float]:
    """Return the widest tolerances that assertions state: a case has one for all its values."""
    tolerances: dict[str, float] = {}
    for node in (inner for observable in asserts for inner in ast.walk(observable.statement)):
        match node:
            case ast.keyword(
                arg="rtol" | "atol" as name, value=ast.Constant(value=int() | float() as value)
            ):
                # Merged to the wider one, so that no assertion of the script becomes stricter.
                tolerances[name] = max(value, tolerances.get(name, 0))
            case _:
                pass
    return tolerances


def render_side(node: ast.expr, observable: Observable, source: ScriptSource) -> str:
    """Return one side of an assertion as text: an array for a list that `numpy.testing` converts.

    Args:
        node: The side.
        observable: The assertion.
        source: The script.
    """
    text = source.segment(node)
    if not isinstance(node, ast.List) or isinstance(observable.statement, ast.Assert):
        return text
    inner = (ast.List, ast.Tuple, ast.UnaryOp)
    leaves = [n for n in ast.walk(node) if isinstance(n, ast.expr) and not isinstance(n, inner)]
    # The harness compares a list leaf by leaf, with another structure than that of the array.
    numeric = all(isinstance(n, ast.Constant) and isinstance(n.value, int | float) for n in leaves)
    numpy = sorted(alias for alias, path in source.names.items() if path == "numpy")
    return f"{numpy[0]}.array({text})" if numeric and numpy else text


def render_expected(observable: Observable, source: ScriptSource) -> str:
    """Return the expected value of an observable as text, empty for none.

    Args:
        observable: The observable.
        source: The script.
    """
    if isinstance(observable.expected, ast.expr):
        return render_side(observable.expected, observable, source)
    return "" if observable.expected is None else repr(observable.expected)


def _is_literal(node: ast.expr) -> bool:
    try:
        ast.literal_eval(node)
    except (ValueError, TypeError):
        return False
    return True


def _find_exit_status(node: ast.stmt, names: Mapping[str, str]) -> Observable | None:
    """Return the value that a last `sys.exit(...)` shows; None for any other statement."""
    if _statement_callee(node, names) not in EXITS:
        return None
    match node:
        case ast.Expr(value=ast.Call(args=[ast.IfExp(test=test, body=ast.Constant(value=good))])):
            # `sys.exit(None)` has status 0, too.
            expected = good in {0, None}
        case ast.Expr(value=ast.Call(args=[ast.UnaryOp(op=ast.Not(), operand=test)])):
            expected = True
        case ast.Expr(value=ast.Call(args=[value])) if not isinstance(value, ast.Constant):
            return Observable(statement=node, values=[value], expected=0)
        case _:
            return None
    return Observable(statement=node, values=[test], expected=expected, is_condition=True)


def strip_conversions(node: ast.expr, names: Mapping[str, str]) -> ast.expr:
    """Return a result without calls that only change how it is shown.

    Args:
        node: An expression, e.g. `float(f(x))` or `f(x).block_until_ready()`.
        names: Dotted path of each imported name.
    """
    match node:
        case ast.Call(args=[inner], keywords=[]) if resolve_callee(node, names) in _CONVERSIONS:
            return strip_conversions(inner, names)
        case ast.Call(func=ast.Attribute(value=inner, attr="block_until_ready"), args=[]):
            return strip_conversions(inner, names)
        case _:
            return node
