"""Simplifies Python code without changing its behavior. Pure.

Removes unused imports, functions and names; decides constant conditions; puts constants in place of
the names that they are bound to. None of this needs a trial, so it is done after each cut.
"""

from __future__ import annotations

import ast
import operator
from typing import TYPE_CHECKING, Any, Final

from conformance.triage.shrink.syntax import (
    count_loads,
    count_own_stores,
    count_stores,
    replace_nodes,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

_MAX_ROUNDS: Final = 20
"""Limit of the rounds: each may enable further simplifications."""
_COMPARISONS: Final[dict[type[ast.cmpop], Callable[[Any, Any], bool]]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
    ast.In: lambda item, container: item in container,
    ast.NotIn: lambda item, container: item not in container,
}


def simplify(tree: ast.Module, keep: str) -> ast.Module:
    """Return a simplified module.

    Args:
        tree: The module; it is changed.
        keep: Name of the function to keep: the rest of the code serves it.
    """
    before = ast.dump(tree)
    for _ in range(_MAX_ROUNDS):
        for node in ast.walk(tree):
            for field in ("body", "orelse", "finalbody"):
                if isinstance(body := getattr(node, field, None), list):
                    body[:] = _drop_inert(body)
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                # Annotations have no effect on a traced function, and would keep their imports.
                node.returns = None
            elif isinstance(node, ast.arg):
                node.annotation = None
        tree = fold_constants(tree)
        # After folding: a name that constants replaced is unused.
        _UnusedRemover(tree, keep).visit(tree)
        for node in ast.walk(tree):
            body = getattr(node, "body", None)
            if isinstance(body, list) and not isinstance(node, ast.Module):
                # A block must not be empty; the module may be.
                body[:] = [item for item in body if not isinstance(item, ast.Pass)] or [ast.Pass()]
        after = ast.dump(tree)
        if after == before:
            break
        before = after
    return ast.fix_missing_locations(tree)


def _drop_inert(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield statements up to the first jump, without docstrings and other constants or names."""
    for node in body:
        if not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant | ast.Name)):
            yield from _split_assignment(node)
        if isinstance(node, ast.Return | ast.Raise):
            return


def _split_assignment(node: ast.stmt) -> list[Any]:
    """Return the assignments of `a, b = x, y`, unless a value reads one of the names."""
    match node:
        case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)) if len(
            targets
        ) == len(values):
            names = {target.id for target in targets if isinstance(target, ast.Name)}
            # A swap reads both names before it binds them.
            if len(names) == len(targets) and not names & set(count_loads(node.value)):
                pairs = zip(targets, values, strict=True)
                return [ast.Assign(targets=[target], value=value) for target, value in pairs]
        case _:
            pass
    return [node]


class _UnusedRemover(ast.NodeTransformer):
    """Removes imports, functions and plain assignments whose names nothing reads."""

    def __init__(self, tree: ast.Module, keep: str) -> None:
        self._loads, self._keep = count_loads(tree), keep

    def _is_unused(self, name: str, node: ast.AST) -> bool:
        # Reads within the node itself do not count: a recursive function may be unused, too.
        return name != self._keep and self._loads[name] <= count_loads(node)[name]

    def visit_Import(self, node: ast.Import | ast.ImportFrom) -> ast.stmt | None:
        if isinstance(node, ast.ImportFrom) and node.module == "__future__":
            return None  # no annotations are left
        node.names = [
            alias
            for alias in node.names
            if not self._is_unused(alias.asname or alias.name.partition(".")[0], node)
        ]
        return node if node.names else None

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.stmt | None:
        return self.visit_Import(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.stmt | None:
        if self._is_unused(node.name, node):
            return None
        self.generic_visit(node)
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.stmt | None:
        # Methods are used by other names than those that are bound.
        return None if self._is_unused(node.name, node) else node

    def visit_Assign(self, node: ast.Assign) -> ast.stmt | None:
        names = [inner for target in node.targets for inner in ast.walk(target)]
        is_plain = all(isinstance(inner, ast.Name | ast.Tuple | ast.Store) for inner in names)
        is_read = any(self._loads[inner.id] for inner in names if isinstance(inner, ast.Name))
        return None if is_plain and not is_read and _has_no_effect(node.value) else node


def _has_no_effect(node: ast.expr) -> bool:
    """Return whether evaluating an expression cannot fail and has no effect."""
    plain = ast.Constant | ast.Name | ast.Tuple | ast.List | ast.Attribute
    children = (child for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr))
    # A lambda runs nothing when it is made. An attribute could run code, but those of modules and
    # arrays do not.
    return isinstance(node, ast.Lambda) or (
        isinstance(node, plain) and all(map(_has_no_effect, children))
    )


def fold_constants(tree: ast.Module) -> ast.Module:
    """Return a module with known conditions decided, and constants in place of their names.

    Args:
        tree: The module; it is changed.
    """
    folded: ast.Module = _ConstantFolder().visit(tree)
    replacements: dict[ast.AST, list[ast.AST]] = {}
    for scope in ast.walk(folded):
        if isinstance(scope, ast.Module | ast.FunctionDef) and (values := _find_constants(scope)):
            for statement in scope.body:
                replacements.update(_find_substitutions(statement, values))
    return replace_nodes(folded, replacements)


def substitute(node: ast.expr, values: Mapping[str, ast.expr]) -> ast.expr:
    """Return a copy of an expression with values in place of names.

    Args:
        node: The expression.
        values: Value by name.
    """
    return replace_nodes(node, dict(_find_substitutions(node, values)))


def _find_constants(scope: ast.Module | ast.FunctionDef) -> dict[str, ast.expr]:
    """Return the constants, dicts and other names that names of a scope are bound to, once."""
    bound = count_own_stores(scope)
    values: dict[str, ast.expr] = {}
    for node in scope.body:
        match node:
            case ast.Assign(
                targets=[ast.Name(id=name)], value=ast.Constant() | ast.Dict() as value
            ):
                values[name] = value
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Name(id=other) as value):
                # Another name for a name that is bound later, or repeatedly, may hold an earlier
                # value.
                if bound[other] <= 1 and other != name:
                    values[name] = value
            case _:
                pass
    return {name: value for name, value in values.items() if bound[name] == 1}


def _find_substitutions(
    node: ast.AST, values: Mapping[str, ast.expr]
) -> Iterator[tuple[ast.AST, list[ast.AST]]]:
    """Yield the nodes below a node that read names, each with the value for it."""
    match node:
        case ast.Name(id=name, ctx=ast.Load()) if name in values:
            # A dict is only indexed, not copied: its readers may change it.
            if not isinstance(values[name], ast.Dict):
                yield node, [values[name]]
        case ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=key)):
            match values.get(name):
                case ast.Dict() as table if (entry := _find_entry(table, key)) is not None:
                    yield node, [entry]
                    return
                case _:
                    pass
        case ast.FunctionDef() | ast.Lambda():
            # Names of the function hide those around it.
            own = set(count_stores(node)) - {getattr(node, "name", "")}
            values = {
                name: value
                for name, value in values.items()
                if not own & {name, getattr(value, "id", name)}
            }
        case _:
            pass
    for child in ast.iter_child_nodes(node):
        yield from _find_substitutions(child, values)


def _find_entry(table: ast.Dict, wanted: object) -> ast.expr | None:
    """Return the value of a key in a literal dict."""
    pairs = zip(table.keys, table.values, strict=True)
    return next(
        (value for key, value in pairs if isinstance(key, ast.Constant) and key.value == wanted),
        None,
    )


class _ConstantFolder(ast.NodeTransformer):
    """Decides conditions that are known, and looks items up in literals."""

    def visit_If(self, node: ast.If | ast.IfExp) -> Any:
        self.generic_visit(node)
        if isinstance(node.test, ast.Constant):
            # The transformer splices the list of a statement into its block.
            return node.body if node.test.value else node.orelse
        return node

    def visit_IfExp(self, node: ast.IfExp) -> Any:
        return self.visit_If(node)

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        compare = _COMPARISONS.get(type(node.ops[0]))
        if compare is None or len(node.ops) > 1 or not isinstance(node.left, ast.Constant):
            return node
        try:
            other = ast.literal_eval(node.comparators[0])
            return ast.Constant(value=compare(node.left.value, other))
        # The other side is no literal, or cannot be compared.
        except (ValueError, TypeError):
            return node

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        self.generic_visit(node)
        first, *rest = node.values
        if not isinstance(first, ast.Constant):
            return node
        # `True or x` and `False and x` never evaluate `x`.
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
            case ast.Subscript(
                value=ast.Tuple(elts=items), slice=ast.Constant(value=int(index))
            ) if index < len(items) and not any(isinstance(i, ast.Starred) for i in items):
                return items[index]
            case ast.Subscript(value=ast.Dict() as table, slice=ast.Constant(value=key)):
                return _find_entry(table, key) or node
            case _:
                return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        arguments: list[ast.expr] = []
        for argument in node.args:
            match argument:
                case ast.Starred(value=ast.Tuple(elts=items) | ast.List(elts=items)):
                    arguments += items
                case _:
                    arguments.append(argument)
        node.args = arguments
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
        for part in node.values:
            match part:
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
