"""What is known of a Python text without running it: constants, and what they decide. Pure."""

from __future__ import annotations

import ast
import operator
from collections import Counter
from typing import TYPE_CHECKING, Any, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

_COMPARED: Final[dict[type[ast.cmpop], Callable[[Any, Any], bool]]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
}

F = TypeVar("F", ast.FunctionDef, ast.Lambda)


def fold(tree: ast.Module) -> ast.Module:
    """Decide conditions that are known, and put constants in the place of their names.

    Args:
        tree: A module; it is changed.
    """
    folded: ast.Module = _Constants().visit(tree)
    _fill_in_names(folded)
    return folded


def loads(tree: ast.AST) -> Counter[str]:
    """Return how often each name is read."""
    return Counter(
        node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and _reads(node)
    )


def stores(tree: ast.AST) -> Counter[str]:
    """Return how often each name is bound, by whatever kind of statement."""
    found: Counter[str] = Counter()
    for node in ast.walk(tree):
        _count(node, found)
    return found


def _own_stores(scope: ast.Module | ast.FunctionDef) -> Counter[str]:
    """Return how often a scope binds each name, functions within it left out."""
    found: Counter[str] = Counter()
    pending = [*ast.iter_child_nodes(scope)]
    while pending:
        node = pending.pop()
        _count(node, found)
        if not isinstance(node, ast.FunctionDef | ast.Lambda | ast.ClassDef):
            pending += ast.iter_child_nodes(node)
    return found


def _count(node: ast.AST, found: Counter[str]) -> None:
    match node:
        case ast.Name() if not _reads(node):
            found[node.id] += 1
        case ast.arg(arg=name) | ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            found[name] += 1
        case ast.Import() | ast.ImportFrom():
            found.update(a.asname or a.name.partition(".")[0] for a in node.names)
        case ast.Global() | ast.Nonlocal():
            found.update(dict.fromkeys(node.names, 2))
        case _:
            pass


def _reads(node: ast.Name) -> bool:
    return isinstance(node.ctx, ast.Load)


class _Constants(ast.NodeTransformer):
    """Folds conditions that are known, and what is looked up in a literal."""

    def visit_If(self, node: ast.If) -> ast.AST | list[ast.stmt]:
        self.generic_visit(node)
        if isinstance(node.test, ast.Constant):
            return node.body if node.test.value else node.orelse
        return node

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.test, ast.Constant):
            return node.body if node.test.value else node.orelse
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        match node:
            case ast.Compare(
                left=ast.Constant(value=one),
                ops=[ast.Eq() | ast.NotEq() | ast.Is() | ast.IsNot() as test],
                comparators=[ast.Constant(value=other)],
            ):
                return ast.Constant(value=_COMPARED[type(test)](one, other))
            case ast.Compare(
                left=ast.Constant(value=one),
                ops=[ast.In() | ast.NotIn() as test],
                comparators=[ast.Tuple(elts=elts) | ast.Set(elts=elts) | ast.List(elts=elts)],
            ) if all(isinstance(e, ast.Constant) for e in elts):
                found = one in [e.value for e in elts if isinstance(e, ast.Constant)]
                return ast.Constant(value=found is isinstance(test, ast.In))
        return node

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        self.generic_visit(node)
        first = node.values[0]
        if not isinstance(first, ast.Constant):
            return node
        decides = bool(first.value) is isinstance(node.op, ast.Or)
        if decides or len(node.values) == 1:
            return first
        node.values = node.values[1:]
        return node.values[0] if len(node.values) == 1 else node

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
            case _:
                pass
        if isinstance(node.value, ast.Dict) and isinstance(node.slice, ast.Constant):
            for key, value in zip(node.value.keys, node.value.values, strict=True):
                if isinstance(key, ast.Constant) and key.value == node.slice.value:
                    return value
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        args: list[ast.expr] = []
        for one in node.args:
            if isinstance(one, ast.Starred) and isinstance(one.value, ast.Tuple | ast.List):
                args += one.value.elts
            else:
                args.append(one)
        node.args = args
        match node:
            case ast.Call(func=ast.Lambda(args=ast.arguments(args=[]), body=body), args=[]):
                return body
            case ast.Call(
                func=ast.Name(id="getattr"), args=[value, ast.Constant(value=str(name))]
            ) if name.isidentifier():
                return ast.Attribute(value=value, attr=name, ctx=ast.Load())
            case _:
                return node


def _fill_in_names(tree: ast.Module) -> None:
    """Put constants and other names in the place of names that are bound once, to them."""
    scopes = [node for node in ast.walk(tree) if isinstance(node, ast.Module | ast.FunctionDef)]
    for scope in scopes:
        bound = _own_stores(scope)
        values: dict[str, ast.expr] = {}
        looked_up: dict[str, ast.Dict] = {}
        for one in scope.body:
            match one:
                case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant() as value):
                    values[name] = value
                case ast.Assign(targets=[ast.Name(id=name)], value=ast.Dict() as value):
                    looked_up[name] = value
                case ast.Assign(targets=[ast.Name(id=name)], value=ast.Name(id=other) as value):
                    if bound[other] <= 1 and other != name and other not in values:
                        values[name] = value
                case _:
                    pass
        values = {name: value for name, value in values.items() if bound[name] == 1}
        looked_up = {name: value for name, value in looked_up.items() if bound[name] == 1}
        if values or looked_up:
            put = _Filled(values, looked_up)
            scope.body[:] = [put.visit(one) for one in scope.body]


def filled(node: ast.expr, values: dict[str, ast.expr]) -> ast.expr:
    """Return a copy of an expression with values in the place of names.

    Args:
        node: The expression; it is left as it is.
        values: Value by name.
    """
    found: ast.expr = _Filled(values, {}).visit(_copied(node))
    return found


class _Filled(ast.NodeTransformer):
    def __init__(self, values: dict[str, ast.expr], looked_up: dict[str, ast.Dict]) -> None:
        self._values, self._looked_up = values, looked_up

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        match node:
            case ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=wanted)) if (
                name in self._looked_up
            ):
                table = self._looked_up[name]
                for key, value in zip(table.keys, table.values, strict=True):
                    if isinstance(key, ast.Constant) and key.value == wanted:
                        return _copied(value)
        self.generic_visit(node)
        return node

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if isinstance(node.ctx, ast.Load) and node.id in self._values:
            return _copied(self._values[node.id])
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        return self._inside(node, set(stores(node)) - {node.name})

    def visit_Lambda(self, node: ast.Lambda) -> ast.Lambda:
        return self._inside(node, set(stores(node)))

    def _inside(self, node: F, own: set[str]) -> F:
        """Fill in a function what it does not bind itself."""
        values = {name: value for name, value in self._values.items() if name not in own}
        values = {
            name: value
            for name, value in values.items()
            if not (isinstance(value, ast.Name) and value.id in own)
        }
        looked_up = {name: value for name, value in self._looked_up.items() if name not in own}
        _Filled(values, looked_up).generic_visit(node)
        return node


def _copied(node: ast.expr) -> ast.expr:
    return ast.parse(ast.unparse(node), mode="eval").body
