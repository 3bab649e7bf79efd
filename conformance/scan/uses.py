"""Uses of JAX in Python source: names resolved through imports and aliases, and their arguments."""

from __future__ import annotations

import ast
import re
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from conformance.scan.signatures import CallShape

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

UNKNOWN: Final = ""
"""A value that is no name of a module."""
PARTIAL: Final = "functools.partial"
_CATCHING: Final = {
    "ImportError",
    "ModuleNotFoundError",
    "AttributeError",
    "Exception",
    "TypeError",
}
_VERSION: Final = re.compile(r"version", re.IGNORECASE)
_OPTION: Final = re.compile(r"jax_[a-z0-9_]+|JAX_[A-Z0-9_]+")
_FUNCTIONS: Final = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_COMPREHENSIONS: Final = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)

Names = frozenset[str]
"""The dotted names that a name may stand for; `UNKNOWN` is among them for any other value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NameUse:
    """A use of a name or an option.

    Attributes:
        names: The dotted names that it may stand for.
        line: Line, from 1.
        column: Column, from 1.
        call: Its arguments, None if it is not called.
        imported: Whether it is an import of the name.
        direct: Whether the name is written as an attribute, and not bound by an import.
        guarded: Whether the code asks for the version, or handles its absence.
        option: An option of `jax.config`, empty for a name.
    """

    names: Names
    line: int
    column: int
    call: CallShape | None = None
    imported: bool = False
    direct: bool = True
    guarded: bool = False
    option: str = ""


@dataclass(slots=True)
class ModuleUses:
    """A module of a code base.

    Attributes:
        name: Its dotted name.
        exports: What its global names stand for.
        stars: Modules of which it imports every name.
        uses: Uses of names that begin with one of the wanted packages.
    """

    name: str
    exports: dict[str, Names] = field(default_factory=dict)
    stars: list[str] = field(default_factory=list)
    uses: list[NameUse] = field(default_factory=list)


@dataclass(slots=True)
class _Scope:
    names: dict[str, set[str]]
    parent: _Scope | None = None
    is_class: bool = False


def find_uses(
    source: str | bytes, name: str, *, is_package: bool, packages: Iterable[str]
) -> ModuleUses:
    """Return the uses of names of packages in the source of a module.

    Args:
        source: The source.
        name: Dotted name of the module.
        is_package: Whether the module is the `__init__` of a package.
        packages: Top-level packages whose names count.

    Raises:
        SyntaxError: If the source is no Python.
    """
    finder = _UseFinder(name, is_package=is_package, packages=frozenset(packages))
    return finder.find(ast.parse(source))


class _UseFinder:
    """Visits a module once, with the names of each scope."""

    def __init__(self, name: str, *, is_package: bool, packages: frozenset[str]) -> None:
        self._found = ModuleUses(name)
        self._package = name if is_package else name.rpartition(".")[0]
        self._packages = packages
        self._scope = _Scope({})
        self._guards = 0

    def find(self, tree: ast.Module) -> ModuleUses:
        self._scope = self._bind(tree.body)
        for statement in tree.body:
            self._visit(statement)
        self._found.exports = {
            key: frozenset(names) for key, names in self._scope.names.items() if names - {UNKNOWN}
        }
        return self._found

    # Bindings: those of a scope are known before its code is visited, as functions run later.

    def _bind(
        self, body: Iterable[ast.AST], bound: Iterable[str] = (), *, is_class: bool = False
    ) -> _Scope:
        scope = _Scope({key: {UNKNOWN} for key in bound}, self._scope, is_class)
        outer, self._scope = self._scope, scope
        for node in _list_own(body):
            self._bind_node(node)
        self._scope = outer
        return scope

    def _bind_node(self, node: ast.AST) -> None:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            self._bind_import(node)
        elif isinstance(node, ast.Assign):
            names = self._resolve(node.value)
            for target in node.targets:
                self._bind_target(target, names)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            self._add(node.name, UNKNOWN)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            self._scope.names.setdefault(node.id, {UNKNOWN})
        elif isinstance(node, ast.ExceptHandler) and node.name:
            self._add(node.name, UNKNOWN)

    def _bind_import(self, node: ast.Import | ast.ImportFrom) -> None:
        module = self._find_module(node) if isinstance(node, ast.ImportFrom) else ""
        for alias in node.names:
            root = alias.name.partition(".")[0]
            if alias.name == "*":
                self._found.stars.append(module)
            elif module:
                self._add(alias.asname or alias.name, f"{module}.{alias.name}")
            else:
                self._add(alias.asname or root, alias.name if alias.asname else root)

    def _bind_target(self, target: ast.expr, names: Names) -> None:
        if isinstance(target, ast.Name):
            self._scope.names.setdefault(target.id, set()).update(names or {UNKNOWN})

    def _add(self, key: str, name: str) -> None:
        self._scope.names.setdefault(key, set()).add(name)

    def _find_module(self, node: ast.ImportFrom) -> str:
        if not node.level:
            return node.module or ""
        parts = self._package.split(".")
        parts = parts[: len(parts) - node.level + 1]
        return ".".join([*parts, *filter(None, [node.module])])

    # Names

    def _resolve(self, node: ast.expr) -> Names:
        """Return what an expression stands for, nothing for a value that is no name."""
        if isinstance(node, ast.Attribute):
            return frozenset(f"{name}.{node.attr}" for name in self._resolve(node.value) if name)
        if isinstance(node, ast.Name):
            scope: _Scope | None = self._scope
            first = True
            while scope is not None:
                # A function does not see the names of the class around it.
                if node.id in scope.names and (first or not scope.is_class):
                    return frozenset(scope.names[node.id])
                scope, first = scope.parent, False
        return frozenset()

    def _record(
        self, node: ast.expr, names: Names, call: CallShape | None = None, *, option: str = ""
    ) -> None:
        wanted = frozenset(name for name in names if name.partition(".")[0] in self._packages)
        if wanted or option:
            self._found.uses.append(
                NameUse(
                    names=wanted, line=node.lineno, column=node.col_offset + 1, call=call,
                    direct=isinstance(node, ast.Attribute), option=option,
                    guarded=self._guards > 0 or UNKNOWN in names,
                )
            )  # fmt: skip

    # Visits

    def _visit(self, node: ast.AST) -> None:
        kind = type(node)
        if kind is ast.Call:
            self._visit_call(node)  # type: ignore[arg-type]
        elif kind is ast.Attribute or kind is ast.Name:
            self._visit_name(node)  # type: ignore[arg-type]
        elif kind is ast.Import or kind is ast.ImportFrom:
            self._visit_import(node)  # type: ignore[arg-type]
        elif kind is ast.Constant:
            self._visit_constant(node)  # type: ignore[arg-type]
        elif isinstance(node, _FUNCTIONS):
            self._visit_function(node)
        elif isinstance(node, ast.ClassDef):
            self._visit_class(node)
        elif isinstance(node, _COMPREHENSIONS):
            with self._inside(self._bind(node.generators)):
                self._visit_all(ast.iter_child_nodes(node))
        elif isinstance(node, ast.Try):
            self._visit_try(node)
        elif isinstance(node, (ast.If, ast.IfExp)) and _asks_for_version(node.test):
            with self._guarded():
                self._visit_all(ast.iter_child_nodes(node))
        else:
            self._visit_all(ast.iter_child_nodes(node))

    def _visit_all(self, nodes: Iterable[ast.AST]) -> None:
        for node in nodes:
            self._visit(node)

    def _visit_name(self, node: ast.Attribute | ast.Name) -> None:
        if not isinstance(node.ctx, ast.Load):
            names: Names = frozenset()
        else:
            names = self._resolve(node)
        if names - {UNKNOWN}:
            self._record(node, names)
        elif isinstance(node, ast.Attribute):
            self._visit(node.value)

    def _visit_call(self, node: ast.Call) -> None:
        names = self._resolve(node.func)
        arguments: list[ast.expr] = [*node.args]
        if PARTIAL in names and arguments and (inner := self._resolve(arguments[0])):
            self._record(arguments[0], inner, _describe_call(node, skipped=1, partial=True))
            arguments = arguments[1:]
        elif names - {UNKNOWN}:
            self._record(node.func, names, _describe_call(node))
        else:
            self._visit(node.func)
        self._visit_all(arguments)
        self._visit_all(keyword.value for keyword in node.keywords)

    def _visit_import(self, node: ast.Import | ast.ImportFrom) -> None:
        module = self._find_module(node) if isinstance(node, ast.ImportFrom) else ""
        for alias in node.names:
            if alias.name == "*":
                continue
            name = f"{module}.{alias.name}" if module else alias.name
            if name.partition(".")[0] in self._packages:
                self._found.uses.append(
                    NameUse(
                        names=frozenset({name}), line=alias.lineno, column=alias.col_offset + 1,
                        imported=True, guarded=self._guards > 0,
                    )
                )  # fmt: skip

    def _visit_constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, str) and _OPTION.fullmatch(node.value):
            self._record(node, frozenset(), option=node.value.lower())

    def _visit_function(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> None:
        arguments = node.args
        self._visit_all([*arguments.defaults, *filter(None, arguments.kw_defaults)])
        named = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        named += [one for one in (arguments.vararg, arguments.kwarg) if one is not None]
        self._visit_all(one.annotation for one in named if one.annotation is not None)
        body: list[ast.AST] = [node.body] if isinstance(node, ast.Lambda) else [*node.body]
        if not isinstance(node, ast.Lambda):
            self._visit_all(node.decorator_list)
            if node.returns is not None:
                self._visit(node.returns)
        with self._inside(self._bind(body, [one.arg for one in named])):
            self._visit_all(body)

    def _visit_class(self, node: ast.ClassDef) -> None:
        self._visit_all([*node.decorator_list, *node.bases])
        self._visit_all(keyword.value for keyword in node.keywords)
        with self._inside(self._bind(node.body, is_class=True)):
            self._visit_all(node.body)

    def _visit_try(self, node: ast.Try) -> None:
        # The handlers are for releases on which the body fails.
        if any(map(_is_catching, node.handlers)):
            with self._guarded():
                self._visit_all([*node.body, *node.handlers])
        else:
            self._visit_all([*node.body, *node.handlers])
        self._visit_all([*node.orelse, *node.finalbody])

    @contextmanager
    def _inside(self, scope: _Scope) -> Iterator[None]:
        outer, self._scope = self._scope, scope
        yield
        self._scope = outer

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        self._guards += 1
        yield
        self._guards -= 1


def _list_own(body: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """Yield the nodes of a scope, without those of the scopes within."""
    waiting = [*body][::-1]
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, (*_FUNCTIONS, ast.ClassDef, *_COMPREHENSIONS)):
            waiting += [*ast.iter_child_nodes(node)][::-1]


def _describe_call(node: ast.Call, *, skipped: int = 0, partial: bool = False) -> CallShape:
    plain = [one for one in node.args if not isinstance(one, ast.Starred)]
    return CallShape(
        positions=len(plain) - skipped,
        keywords=frozenset(keyword.arg for keyword in node.keywords if keyword.arg),
        more_positions=len(plain) < len(node.args),
        more_keywords=any(keyword.arg is None for keyword in node.keywords),
        partial=partial,
    )


def _is_catching(handler: ast.ExceptHandler) -> bool:
    """Say whether a handler catches what a missing name raises."""
    if handler.type is None:
        return True
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(isinstance(kind, ast.Name) and kind.id in _CATCHING for kind in kinds)


def _asks_for_version(test: ast.expr) -> bool:
    """Say whether a condition asks for a version, or whether there is an attribute."""
    for node in ast.walk(test):
        if isinstance(node, ast.Name) and (node.id == "hasattr" or _VERSION.search(node.id)):
            return True
        if isinstance(node, ast.Attribute) and _VERSION.search(node.attr):
            return True
    return False
