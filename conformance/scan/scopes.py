"""Scopes of Python source: the names that they bind, and the dotted names that these stand for."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

UNKNOWN: Final = ""
"""A value that is no name of a module."""
RESULT: Final = "()"
"""End of a dotted name that stands for the result of a call, e.g. `jax.pmap()`."""
PARTIAL: Final = "functools.partial"
Names = frozenset[str]
"""The dotted names that a name may stand for; `UNKNOWN` is among them for any other value."""
FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
FUNCTIONS: Final = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
COMPREHENSIONS: Final = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_DEFINITIONS: Final = frozenset({ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef})
_TARGETED: Final = (ast.For, ast.AsyncFor, ast.AnnAssign, ast.AugAssign, ast.comprehension)
_BLOCKS: Final = ("body", "orelse", "finalbody", "handlers", "cases")
_SKIPPED: Final = frozenset({"ctx", "op", "ops", "kind", "type_comment", "type_ignores"})
_FIELDS: dict[type[ast.AST], tuple[str, ...]] = {}


@dataclass(slots=True, eq=False)
class LocalFunction:
    """A function of the scanned module.

    Attributes:
        given: Dotted names of the callables that get it as an argument, or decorate it.
        mentions: Functions of the module that its code names.
    """

    given: set[str] = field(default_factory=set)
    mentions: list[LocalFunction] = field(default_factory=list)


@dataclass(slots=True)
class NameScope:
    """A scope.

    Attributes:
        names: Names that it binds, and what these stand for.
        functions: Functions that it defines.
        parent: The scope around it.
        is_class: Whether it is the body of a class.
    """

    names: dict[str, set[str]]
    functions: dict[str, LocalFunction] = field(default_factory=dict)
    parent: NameScope | None = None
    is_class: bool = False

    def list_visible(self) -> Iterator[NameScope]:
        """Yield the scopes whose names code of this one sees, the nearest first."""
        yield self
        scope = self.parent
        while scope is not None:
            # A function does not see the names of the class around it.
            if not scope.is_class:
                yield scope
            scope = scope.parent

    def add(self, key: str, name: str) -> None:
        """Bind a name to one more dotted name.

        Args:
            key: The name.
            name: What it may stand for.
        """
        self.names.setdefault(key, set()).add(name)


class NameResolver:
    """Resolves the names of one module.

    Args:
        package: The package that its relative imports begin with.
        results: Dotted names of the callables whose results are followed.
    """

    def __init__(self, package: str, results: Names = frozenset()) -> None:
        self._package = package
        self._results = results
        self.scope = NameScope({})
        self.stars: list[str] = []
        """Modules of which every name is imported."""

    # The names of a scope are bound before its code is visited, for functions run later.

    def bind(
        self, body: Iterable[ast.AST], bound: Iterable[str] = (), *, is_class: bool = False
    ) -> NameScope:
        """Return a scope within the present one.

        Args:
            body: Its statements, or the generators of a comprehension.
            bound: Names that it binds to unknown values, such as parameters.
            is_class: Whether it is the body of a class.
        """
        scope = NameScope({key: {UNKNOWN} for key in bound}, parent=self.scope, is_class=is_class)
        outer, self.scope = self.scope, scope
        for statement in _list_statements(body):
            self._bind_statement(statement)
        self.scope = outer
        return scope

    def _bind_statement(self, node: ast.AST) -> None:
        kind = type(node)
        if kind is ast.Assign:
            names = self.resolve(node.value)  # type: ignore[attr-defined]
            for target in node.targets:  # type: ignore[attr-defined]
                self._bind_target(target, names)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            self._bind_import(node)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            self.scope.functions[node.name] = LocalFunction()
            # The outermost decorator makes the value.
            results = [self._resolve_result(one) for one in node.decorator_list[:1]]
            self.scope.names.setdefault(node.name, set()).update(*results or [frozenset({UNKNOWN})])
        elif kind is ast.ClassDef:
            self.scope.add(node.name, UNKNOWN)  # type: ignore[attr-defined]
        elif isinstance(node, _TARGETED):
            self.bind_unknown(node.target)
        elif isinstance(node, (ast.With, ast.AsyncWith)):
            for item in node.items:
                self.bind_unknown(item.optional_vars)
        elif isinstance(node, ast.ExceptHandler) and node.name:
            self.scope.add(node.name, UNKNOWN)

    def _bind_import(self, node: ast.Import | ast.ImportFrom) -> None:
        module = self.find_module(node) if isinstance(node, ast.ImportFrom) else ""
        for alias in node.names:
            root = alias.name.partition(".")[0]
            if alias.name == "*":
                self.stars.append(module)
            elif module:
                self.scope.add(alias.asname or alias.name, f"{module}.{alias.name}")
            else:
                self.scope.add(alias.asname or root, alias.name if alias.asname else root)

    def _bind_target(self, target: ast.expr, names: Names) -> None:
        if isinstance(target, ast.Name):
            self.scope.names.setdefault(target.id, set()).update(names or {UNKNOWN})
        elif isinstance(target, (ast.Tuple, ast.List)):
            # Each part of a result counts as the result.
            parts = names if all(name.endswith(RESULT) for name in names) else frozenset()
            for part in target.elts:
                self._bind_target(part, parts)
        else:
            self.bind_unknown(target)

    def bind_unknown(self, target: ast.expr | None) -> None:
        """Bind the names of a target to an unknown value, unless they are bound.

        Args:
            target: A target, None for none.
        """
        for node in ast.walk(target) if target is not None else ():
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                self.scope.names.setdefault(node.id, {UNKNOWN})

    def find_module(self, node: ast.ImportFrom) -> str:
        """Return the dotted name of the module that a statement imports from.

        Args:
            node: The statement.
        """
        if not node.level:
            return node.module or ""
        parts = self._package.split(".")
        parts = parts[: len(parts) - node.level + 1]
        return ".".join([*parts, *filter(None, [node.module])])

    def resolve(self, node: ast.expr) -> Names:
        """Return the names that an expression may stand for, none for a value that is no name.

        Args:
            node: The expression.
        """
        if isinstance(node, ast.Name):
            for scope in self.scope.list_visible():
                if node.id in scope.names:
                    return frozenset(scope.names[node.id])
        elif isinstance(node, ast.Attribute):
            return frozenset(f"{name}.{node.attr}" for name in self.resolve(node.value) if name)
        elif isinstance(node, ast.Call) and self._results:
            return self._resolve_result(node) - {UNKNOWN}
        return frozenset()

    def _resolve_result(self, node: ast.expr) -> Names:
        """Return the names of the result of a call, or of what a decorator makes."""
        made = {
            f"{name}{RESULT}"
            for name in self.find_callees(node)
            if name in self._results or RESULT in name
        }
        return frozenset(made or {UNKNOWN})

    def find_callees(self, node: ast.expr) -> Names:
        """Return the names that are called, by a call, a decorator or a partial application.

        Args:
            node: A call, or a decorator.
        """
        if not isinstance(node, ast.Call):
            return self.resolve(node)
        names = self.resolve(node.func)
        return self.resolve(node.args[0]) if PARTIAL in names and node.args else names

    def find_function(self, node: ast.expr) -> LocalFunction | None:
        """Return the function of the module that an expression stands for.

        Args:
            node: The expression; a method is an attribute of `self` or `cls`.
        """
        if isinstance(node, ast.Name):
            for scope in self.scope.list_visible():
                if node.id in scope.names:
                    return scope.functions.get(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            around: NameScope | None = self.scope if node.value.id in {"self", "cls"} else None
            while around is not None:
                if around.is_class:
                    return around.functions.get(node.attr)
                around = around.parent
        elif isinstance(node, ast.Call) and node.args and PARTIAL in self.resolve(node.func):
            return self.find_function(node.args[0])
        return None


def _list_statements(body: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """Yield the statements of a scope, without those of the scopes within."""
    for node in body:
        yield node
        if type(node) in _DEFINITIONS:
            continue
        for name in _BLOCKS:
            within = getattr(node, name, None)
            if within.__class__ is list:
                yield from _list_statements(within)


def list_children(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes directly within a node that may hold names.

    Args:
        node: The node.
    """
    kind = type(node)
    names = _FIELDS.get(kind)
    if names is None:
        names = _FIELDS[kind] = tuple(name for name in kind._fields if name not in _SKIPPED)
    for name in names:
        value = getattr(node, name, None)
        if value.__class__ is list:
            for one in value:
                if isinstance(one, ast.AST):
                    yield one
        elif isinstance(value, ast.AST):
            yield value


def close_over_mentions(functions: Iterable[LocalFunction]) -> None:
    """Give the functions that others name to the callables that get these.

    Args:
        functions: The functions of a module.
    """
    waiting = [one for one in functions if one.given]
    while waiting:
        outer = waiting.pop()
        for inner in outer.mentions:
            if not outer.given <= inner.given:
                inner.given |= outer.given
                waiting.append(inner)
