"""Uses of JAX in Python source: names resolved through imports and aliases, and their arguments."""

from __future__ import annotations

import ast
import re
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from conformance.scan.scopes import (
    COMPREHENSIONS,
    FUNCTIONS,
    PARTIAL,
    UNKNOWN,
    FunctionNode,
    LocalFunction,
    NameResolver,
    Names,
    NameScope,
    close_over_mentions,
    list_children,
)
from conformance.scan.signatures import CallShape

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator

_CATCHING: Final = {
    "ImportError",
    "ModuleNotFoundError",
    "AttributeError",
    "Exception",
    "TypeError",
}
_VERSION: Final = re.compile(r"version|_[gl][te]_?\d", re.IGNORECASE)
"""Part of a name that stands for a version, or for a comparison of one, e.g. `JAX_GE_0_8_2`."""
HASATTR: Final = "hasattr"
_OPTION: Final = re.compile(r"jax_[a-z0-9_]+|JAX_[A-Z0-9_]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class NameUse:
    """A use of a name or an option.

    Attributes:
        names: The dotted names that it may stand for.
        line: Line, from 1.
        column: Column, from 1.
        call: Its arguments, None if it is not called.
        imported: Whether it is an import of the name.
        module: The module that the import needs, empty for other uses.
        direct: Whether the name is written as an attribute, and not bound by an import.
        guarded: Whether the code asks for the version, or handles its absence.
        tested: Dotted names without which the code does not run, as it asks for them by `hasattr`.
        option: An option of `jax.config`, empty for a name.
        given: Dotted names of the values that it gets as arguments.
        within: Dotted names of the callables that get the function around it, or decorate it.
    """

    names: Names
    line: int
    column: int
    call: CallShape | None = None
    imported: bool = False
    module: str = ""
    direct: bool = True
    guarded: bool = False
    tested: Names = frozenset()
    option: str = ""
    given: Names = frozenset()
    within: Names = frozenset()


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


def find_uses(
    source: str | bytes,
    name: str,
    *,
    is_package: bool,
    packages: Iterable[str],
    results: Names = frozenset(),
) -> ModuleUses:
    """Return the uses of names of packages in the source of a module.

    Args:
        source: The source.
        name: Dotted name of the module.
        is_package: Whether the module is the `__init__` of a package.
        packages: Top-level packages whose names count.
        results: Dotted names of the callables whose results are followed: `jax.pmap(f).lower` is
            a use of `jax.pmap().lower` if `jax.pmap` is among them.

    Raises:
        SyntaxError: If the source is no Python.
    """
    package = name if is_package else name.rpartition(".")[0]
    finder = _UseFinder(NameResolver(package, results), frozenset(packages))
    return finder.find(name, ast.parse(source))


class _UseFinder:
    """Visits a module once, with the names of each scope."""

    def __init__(self, names: NameResolver, packages: Names) -> None:
        self._names = names
        self._packages = packages
        self._uses: list[tuple[NameUse, LocalFunction | None]] = []
        self._functions: list[LocalFunction] = []
        self._function: LocalFunction | None = None
        """The function whose code is visited."""
        self._lambdas: dict[ast.Lambda, LocalFunction] = {}
        self._guards = 0
        self._tested: Names = frozenset()
        self._flags = {HASATTR}
        """`hasattr`, and the global names whose values depend on the version."""
        self._visitors: dict[type[ast.AST], Callable[[Any], None]] = {
            ast.Call: self._visit_call,
            ast.Attribute: self._visit_name,
            ast.Name: self._visit_name,
            ast.Import: self._visit_import,
            ast.ImportFrom: self._visit_import,
            ast.Constant: self._visit_constant,
            ast.ClassDef: self._visit_class,
            ast.NamedExpr: self._visit_named_expression,
            ast.Try: self._visit_try,
            ast.If: self._visit_condition,
            ast.IfExp: self._visit_condition,
            **dict.fromkeys(FUNCTIONS, self._visit_function),
            **dict.fromkeys(COMPREHENSIONS, self._visit_comprehension),
        }

    def find(self, name: str, tree: ast.Module) -> ModuleUses:
        scope = self._names.scope = self._names.bind(tree.body)
        for statement in tree.body:
            if isinstance(statement, ast.Assign) and _asks_for_version(statement.value):
                self._flags |= {one.id for one in statement.targets if isinstance(one, ast.Name)}
        self._visit_all(tree.body)
        close_over_mentions(self._functions)
        return ModuleUses(
            name,
            {key: frozenset(names) for key, names in scope.names.items() if names - {UNKNOWN}},
            self._names.stars,
            [
                replace(use, within=frozenset(around.given)) if around and around.given else use
                for use, around in self._uses
            ],
        )

    def _record(
        self, node: ast.expr, names: Names, call: CallShape | None = None, *, option: str = "",
        given: Names = frozenset(),
    ) -> None:  # fmt: skip
        wanted = frozenset(name for name in names if name.partition(".")[0] in self._packages)
        if wanted or option:
            use = NameUse(
                names=wanted, line=node.lineno, column=node.col_offset + 1, call=call,
                direct=isinstance(node, ast.Attribute), option=option,
                guarded=self._guards > 0 or UNKNOWN in names, tested=self._tested, given=given,
            )  # fmt: skip
            self._uses.append((use, self._function))

    # Visits

    def _visit(self, node: ast.AST) -> None:
        visitor = self._visitors.get(type(node))
        if visitor is not None:
            visitor(node)
        else:
            for child in list_children(node):
                self._visit(child)

    def _visit_all(self, nodes: Iterable[ast.AST]) -> None:
        for node in nodes:
            self._visit(node)

    def _visit_name(self, node: ast.Attribute | ast.Name) -> None:
        names: Names = frozenset()
        if isinstance(node.ctx, ast.Load):
            names = self._names.resolve(node)
            self._mention(node)
        if names - {UNKNOWN}:
            self._record(node, names)
        if names:
            self._visit_made(node)
        elif isinstance(node, ast.Attribute):
            self._visit(node.value)

    def _visit_made(self, node: ast.expr) -> None:
        """Visit the call whose result a name stands for, if it is within its expression."""
        while isinstance(node, ast.Attribute):
            node = node.value
        if isinstance(node, ast.Call):
            self._visit(node)

    def _mention(self, node: ast.expr) -> None:
        """Note that the present function names another one of the module."""
        if self._function is not None and (named := self._names.find_function(node)) is not None:
            self._function.mentions.append(named)

    def _visit_call(self, node: ast.Call) -> None:
        names = self._names.resolve(node.func)
        arguments: list[ast.expr] = [*node.args]
        values = [*arguments, *(keyword.value for keyword in node.keywords)]
        self._give(self._names.find_callees(node), values)
        given = frozenset[str]().union(*map(self._names.resolve, values)) if names else names
        if PARTIAL in names and arguments and (inner := self._names.resolve(arguments[0])):
            shape = _describe_call(node, skipped=1, partial=True)
            self._record(arguments[0], inner, shape, given=given)
            arguments = arguments[1:]
        elif names - {UNKNOWN}:
            self._record(node.func, names, _describe_call(node), given=given)
            self._visit_made(node.func)
        else:
            self._visit(node.func)
        self._mention(node.func)
        self._visit_all(arguments)
        self._visit_all(keyword.value for keyword in node.keywords)

    def _give(self, callees: Names, values: Iterable[ast.expr]) -> None:
        """Note which functions of the module a call of other packages gets."""
        wanted = callees - {UNKNOWN}
        for value in values if wanted else ():
            function = self._names.find_function(value)
            if isinstance(value, ast.Lambda):
                function = self._lambdas.setdefault(value, LocalFunction())
            if function is not None:
                function.given |= wanted

    def _visit_import(self, node: ast.Import | ast.ImportFrom) -> None:
        module = self._names.find_module(node) if isinstance(node, ast.ImportFrom) else ""
        for alias in node.names:
            if alias.name == "*":
                continue
            name = f"{module}.{alias.name}" if module else alias.name
            if name.partition(".")[0] in self._packages:
                use = NameUse(
                    names=frozenset({name}), line=alias.lineno, column=alias.col_offset + 1,
                    imported=True, module=module or name, guarded=self._guards > 0,
                    tested=self._tested,
                )  # fmt: skip
                self._uses.append((use, None))

    def _visit_constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, str) and _OPTION.fullmatch(node.value):
            self._record(node, frozenset(), option=node.value.lower())

    def _visit_named_expression(self, node: ast.NamedExpr) -> None:
        self._names.bind_unknown(node.target)
        self._visit(node.value)

    def _visit_function(self, node: FunctionNode) -> None:
        arguments = node.args
        self._visit_all([*arguments.defaults, *filter(None, arguments.kw_defaults)])
        named = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        named += [one for one in (arguments.vararg, arguments.kwarg) if one is not None]
        self._visit_all(one.annotation for one in named if one.annotation is not None)
        if isinstance(node, ast.Lambda):
            function = self._lambdas.setdefault(node, LocalFunction())
            body: list[ast.AST] = [node.body]
        else:
            function = self._names.scope.functions.setdefault(node.name, LocalFunction())
            body = [*node.body]
            for decorator in node.decorator_list:
                function.given |= self._names.find_callees(decorator) - {UNKNOWN}
            self._visit_all(node.decorator_list)
            if node.returns is not None:
                self._visit(node.returns)
        self._functions.append(function)
        outer, self._function = self._function, function
        if outer is not None:
            outer.mentions.append(function)
        with self._inside(self._names.bind(body, [one.arg for one in named])):
            self._visit_all(body)
        self._function = outer

    def _visit_class(self, node: ast.ClassDef) -> None:
        self._visit_all([*node.decorator_list, *node.bases])
        self._visit_all(keyword.value for keyword in node.keywords)
        with self._inside(self._names.bind(node.body, is_class=True)):
            self._visit_all(node.body)

    def _visit_comprehension(
        self, node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
    ) -> None:
        with self._inside(self._names.bind(node.generators)):
            self._visit_all(list_children(node))

    def _visit_condition(self, node: ast.If | ast.IfExp) -> None:
        asks = _asks_for_version(node.test, self._flags)
        tested = self._list_tested(node.test) if asks else frozenset[str]()
        if not isinstance(node, ast.If) or not tested:
            with self._guarded(asked=asks):
                self._visit_all(list_children(node))
            return
        with self._guarded(asked=True):
            self._visit_all([node.test, *node.orelse])
        outer, self._tested = self._tested, self._tested | tested
        self._visit_all(node.body)
        self._tested = outer

    def _list_tested(self, test: ast.expr) -> Names:
        """Return the names that a condition asks for by `hasattr`.

        Empty if it asks for anything else, too, or holds without one of them.
        """
        is_all = isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And)
        tested: set[str] = set()
        for part in test.values if isinstance(test, ast.BoolOp) and is_all else [test]:
            if not _asks_for_version(part, self._flags):
                continue
            name = self._find_tested(part)
            if name is None:
                return frozenset()
            tested.add(name)
        return frozenset(tested)

    def _find_tested(self, node: ast.expr) -> str | None:
        """Return the dotted name that a call of `hasattr` is about, None if it is not certain."""
        match node:
            case ast.Call(func=ast.Name(id=function), args=[owner, ast.Constant(value=str(name))]):
                owners = self._names.resolve(owner) if function == HASATTR else frozenset()
                if len(owners) == 1 and UNKNOWN not in owners:
                    return f"{next(iter(owners))}.{name}"
            case _:
                pass
        return None

    def _visit_try(self, node: ast.Try) -> None:
        # The handlers are for releases on which the body fails.
        with self._guarded(asked=any(map(_is_catching, node.handlers))):
            self._visit_all([*node.body, *node.handlers])
        self._visit_all([*node.orelse, *node.finalbody])

    @contextmanager
    def _inside(self, scope: NameScope) -> Iterator[None]:
        outer, self._names.scope = self._names.scope, scope
        yield
        self._names.scope = outer

    @contextmanager
    def _guarded(self, *, asked: bool) -> Iterator[None]:
        self._guards += asked
        yield
        self._guards -= asked


def _describe_call(node: ast.Call, *, skipped: int = 0, partial: bool = False) -> CallShape:
    plain = [one for one in node.args if not isinstance(one, ast.Starred)]
    named: list[tuple[str, ast.expr]] = [
        (str(number - skipped), one) for number, one in enumerate(plain)
    ]
    named += [(keyword.arg, keyword.value) for keyword in node.keywords if keyword.arg]
    return CallShape(
        positions=len(plain) - skipped,
        keywords=frozenset(keyword.arg for keyword in node.keywords if keyword.arg),
        literals=frozenset(
            (name, repr(one.value))
            for name, one in named
            if isinstance(one, ast.Constant) and isinstance(one.value, str | bool | None)
        ),
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


def _asks_for_version(test: ast.expr, flags: Collection[str] = (HASATTR,)) -> bool:
    """Say whether an expression asks for a version, or whether there is an attribute."""
    for node in ast.walk(test):
        if isinstance(node, ast.Name) and (node.id in flags or _VERSION.search(node.id)):
            return True
        if isinstance(node, ast.Attribute) and _VERSION.search(node.attr):
            return True
    return False
