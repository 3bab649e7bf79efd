"""Constant folding: what Python code decides without being run. Pure."""

from __future__ import annotations

import ast
import operator
from typing import TYPE_CHECKING, Any, Final

from conformance.triage.shrink.bindings import own_stores, stores
from conformance.triage.shrink.tree import changed, copied_with

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

_COMPARED: Final[dict[type[ast.cmpop], Callable[[Any, Any], bool]]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
    ast.In: lambda one, other: one in other,
    ast.NotIn: lambda one, other: one not in other,
}


def fold(tree: ast.Module) -> ast.Module:
    """Return a module in which known conditions are decided, and constants stand for their names.

    Args:
        tree: The module; it is changed.
    """
    folded: ast.Module = _Constants().visit(tree)
    changes: dict[ast.AST, list[ast.AST]] = {}
    for scope in ast.walk(folded):
        if isinstance(scope, ast.Module | ast.FunctionDef) and (values := _known(scope)):
            for statement in scope.body:
                changes.update(_fillings(statement, values))
    return changed(folded, changes)


def filled(node: ast.expr, values: Mapping[str, ast.expr]) -> ast.expr:
    """Return a copy of an expression with values in the place of names.

    Args:
        node: The expression.
        values: Value by name.
    """
    return copied_with(node, dict(_fillings(node, values)))


def _known(scope: ast.Module | ast.FunctionDef) -> dict[str, ast.expr]:
    """Return the constants, tables and other names that names of a scope are bound to, once."""
    bound = own_stores(scope)
    values: dict[str, ast.expr] = {}
    for one in scope.body:
        match one:
            case ast.Assign(
                targets=[ast.Name(id=name)], value=ast.Constant() | ast.Dict() as value
            ):
                values[name] = value
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Name(id=other) as value):
                if bound[other] <= 1 and other != name:
                    values[name] = value
            case _:
                pass
    return {name: value for name, value in values.items() if bound[name] == 1}


def _fillings(
    node: ast.AST, values: Mapping[str, ast.expr]
) -> Iterator[tuple[ast.AST, list[ast.AST]]]:
    """Yield the nodes below a node that read names, each with the value in its place."""
    match node:
        case ast.Name(id=name, ctx=ast.Load()) if name in values:
            if not isinstance(values[name], ast.Dict):
                yield node, [values[name]]
        case ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=key)):
            match values.get(name):
                case ast.Dict() as table if (entry := _entry(table, key)) is not None:
                    yield node, [entry]
                    return
                case _:
                    pass
        case ast.FunctionDef() | ast.Lambda():
            own = set(stores(node)) - {getattr(node, "name", "")}
            values = {
                name: value
                for name, value in values.items()
                if not own & {name, getattr(value, "id", name)}
            }
        case _:
            pass
    for child in ast.iter_child_nodes(node):
        yield from _fillings(child, values)


def _entry(table: ast.Dict, wanted: object) -> ast.expr | None:
    """Return the value of a key in a literal table."""
    pairs = zip(table.keys, table.values, strict=True)
    return next(
        (value for key, value in pairs if isinstance(key, ast.Constant) and key.value == wanted),
        None,
    )


class _Constants(ast.NodeTransformer):
    """Folds conditions that are known, and what is looked up in a literal."""

    def visit_If(self, node: ast.If | ast.IfExp) -> Any:
        self.generic_visit(node)
        if isinstance(node.test, ast.Constant):
            return node.body if node.test.value else node.orelse
        return node

    def visit_IfExp(self, node: ast.IfExp) -> Any:
        return self.visit_If(node)

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        compare = _COMPARED.get(type(node.ops[0]))
        if compare is None or len(node.ops) > 1 or not isinstance(node.left, ast.Constant):
            return node
        try:
            other = ast.literal_eval(node.comparators[0])
            return ast.Constant(value=compare(node.left.value, other))
        except (ValueError, TypeError):
            return node

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        self.generic_visit(node)
        first, *rest = node.values
        if not isinstance(first, ast.Constant):
            return node
        if bool(first.value) is isinstance(node.op, ast.Or) or not rest:
            return first
        return rest[0] if len(rest) == 1 else ast.BoolOp(op=node.op, values=rest)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.op, ast.Not) and isinstance(node.operand, ast.Constant):
            return ast.Constant(value=not node.operand.value)
        return node

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        self.generic_visit(node)
        match node:
            case ast.Subscript(value=ast.Tuple(elts=elts), slice=ast.Constant(value=int(at))) if (
                at < len(elts) and not any(isinstance(one, ast.Starred) for one in elts)
            ):
                return elts[at]
            case ast.Subscript(value=ast.Dict() as table, slice=ast.Constant(value=key)):
                return _entry(table, key) or node
            case _:
                return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        unpacked = [
            one.value.elts
            if isinstance(one, ast.Starred) and isinstance(one.value, ast.Tuple | ast.List)
            else [one]
            for one in node.args
        ]
        node.args = [one for several in unpacked for one in several]
        match node:
            case ast.Call(func=ast.Lambda(args=ast.arguments(args=[]), body=body), args=[]):
                return body
            case ast.Call(
                func=ast.Name(id="getattr"), args=[value, ast.Constant(value=str(name))]
            ) if name.isidentifier():
                return ast.Attribute(value=value, attr=name, ctx=ast.Load())
            case _:
                return node

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        self.generic_visit(node)
        parts: list[str] = []
        for one in node.values:
            match one:
                case (
                    ast.Constant(value=value)
                    | ast.FormattedValue(
                        value=ast.Constant(value=int() | str() as value),
                        conversion=-1,
                        format_spec=None,
                    )
                ):
                    parts.append(str(value))
                case _:
                    return node
        return ast.Constant(value="".join(parts))
