"""The source code of a case, read from its file without importing it.

It consists of the function of the case, and of all statements of its file and its helpers that the
function uses, directly or not, in their order. Their text stays as written, with comments, but
without decorators of the kit.
"""

from __future__ import annotations

import ast
import builtins
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from conformance.corpus.constants import find_defaults
from conformance.corpus.project import FOR_CASES
from conformance.corpus.python_source import get_callee_name, parse
from conformance.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    ReadFile = Callable[[Path], str]
    Function = ast.FunctionDef | ast.AsyncFunctionDef

KIT: Final = "conformance"
MARKERS: Final = frozenset({"program", "probe"})
REPLACEABLE: Final = frozenset({"Program", "Observed", "raises", "Raises", "CaseError"})
"""Names of the kit for which a reproduction has a stand-in."""
EVERYTHING: Final = "*"
"""Marks a use of `env` or of keywords that is unknown: all of them are needed."""
_SCOPES: Final = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_PREDEFINED: Final = frozenset(
    {*dir(builtins), "__name__", "__doc__", "__qualname__", "__module__"}
)


class NotStaticError(UsageError):
    """A name that a case uses cannot be found by reading its file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseSource:
    """The source code of a case.

    Attributes:
        imports: Its imports, one statement each.
        definitions: Texts of the statements, in order.
        modules: Top-level names of the packages imported.
        kit: Names of the kit that are used, of `REPLACEABLE`.
        env: Attributes of `env` that are used: `mesh`, `compat.shard_map`; `EVERYTHING` if that is
            unknown.
        keywords: Keywords of the calls of `Program` and `Observed`, and of `env.mesh`.
        bound: Names that the statements bind in the file.
        has_future_annotations: Whether one of its files has `from __future__ import annotations`.
    """

    imports: tuple[str, ...]
    definitions: tuple[str, ...]
    modules: frozenset[str]
    kit: frozenset[str]
    env: frozenset[str]
    keywords: frozenset[str]
    bound: frozenset[str]
    has_future_annotations: bool


@dataclass(eq=False)
class _Module:
    """A file with its statements by the names that they bind."""

    path: Path
    text: str
    tree: ast.Module
    bound: dict[str, list[ast.stmt]] = field(default_factory=dict)
    used: dict[ast.stmt, None] = field(default_factory=dict)

    def render_statement(self, node: ast.stmt) -> str:
        """Return the text of a statement, without decorators of the kit."""
        lines = self.text.splitlines()
        kept = [
            "\n".join(lines[decorator.lineno - 1 : decorator.end_lineno])
            for decorator in getattr(node, "decorator_list", ())
            if get_callee_name(decorator) not in MARKERS
        ]
        return "\n".join([*kept, *lines[node.lineno - 1 : node.end_lineno]])


def extract_source(file: Path, name: str, read: ReadFile) -> CaseSource:
    """Return the source code of a case.

    Args:
        file: File of the case.
        name: Name of its function.
        read: Returns the text of a file.

    Raises:
        NotStaticError: If a name it uses cannot be found; the message has the name and the place.
    """
    collector = _SourceCollector(read)
    module = collector.load_module(file)
    collector.use_name(module, name, file.name)
    return collector.make_source(name)


class _SourceCollector:
    """Collects the function of a case, and all that it uses."""

    def __init__(self, read: ReadFile) -> None:
        self._read = read
        self._modules: dict[Path, _Module] = {}
        self._imports: dict[tuple[str, str, str], None] = {}
        self._kit: set[str] = set()
        self._owners: dict[str, Path] = {}

    def load_module(self, path: Path) -> _Module:
        """Return a file, read only once."""
        if path not in self._modules:
            text = self._read(path)
            module = _Module(path, text, parse(text, str(path)))
            for node in module.tree.body:
                for name in _bound_names(node):
                    # Several statements may bind a name, e.g. two assignments; all of them are
                    # needed.
                    module.bound.setdefault(name, []).append(node)
            self._modules[path] = module
            metadata = set(find_defaults(module.tree))
            for node in module.tree.body[bool(ast.get_docstring(module.tree)) :]:
                # Any other expression has an effect, although nothing reads it.
                if isinstance(node, ast.Expr) and node.value not in metadata:
                    self._use_statement(module, node)
        return self._modules[path]

    def use_name(self, module: _Module, name: str, where: str) -> None:
        """Add the statements that bind a name, and all that they use."""
        if name not in module.bound:
            raise NotStaticError(
                f"{where}: {name} cannot be found by reading {module.path.name}; "
                "import or define it by its name at the top level of the file"
            )
        for node in module.bound[name]:
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                self._use_import(module, node, name)
            else:
                if not _is_type_checking(node):
                    self._refuse_conflict(module, name)
                self._use_statement(module, node)

    def _refuse_conflict(self, module: _Module, name: str) -> None:
        """Refuse a name that two files define: the reproduction is one file."""
        path = self._owners.setdefault(name, module.path)
        if path != module.path:
            raise NotStaticError(
                f"{module.path.name} and {path.name} both define {name}; rename it in one of them, "
                "for a reproduction is one file"
            )

    def _use_statement(self, module: _Module, node: ast.stmt) -> None:
        if node in module.used:
            return
        # Marked before its names are followed: functions may be recursive.
        module.used[node] = None
        # Scopes are not distinguished: a name that is bound both in the file and within the
        # statement counts as used, which only adds a definition.
        inner = {name for child in ast.walk(node) for name in _own_bindings(child)}
        for part in _iter_parts(node):
            for used in ast.walk(part):
                if not isinstance(used, ast.Name) or not isinstance(used.ctx, ast.Load):
                    continue
                where = f"{module.path.name}:{used.lineno}"
                if used.id == "__file__":
                    raise NotStaticError(
                        f"{where}: uses __file__, but a reproduction is a single file; "
                        "move the data into the case"
                    )
                if used.id in module.bound or (used.id not in inner and used.id not in _PREDEFINED):
                    self.use_name(module, used.id, where)

    def _use_import(self, module: _Module, node: ast.Import | ast.ImportFrom, name: str) -> None:
        where = f"{module.path.name}:{node.lineno}"
        for alias in node.names:
            if (alias.asname or alias.name.partition(".")[0]) != name:
                continue
            # These functions of the kit need nothing of the kit themselves, and are copied like
            # helpers.
            if isinstance(node, ast.ImportFrom) and node.module in FOR_CASES and not alias.asname:
                self.use_name(self.load_module(FOR_CASES[node.module]), alias.name, where)
            elif isinstance(node, ast.ImportFrom) and node.level:
                self._use_helper(module, node, alias, where)
            elif isinstance(node, ast.Import):
                # Always raises for the kit: a module has no stand-in.
                self._use_kit(alias.name, "", where)
                self._imports["", alias.name, alias.asname or ""] = None
            elif not self._use_kit(node.module or "", alias.name, where, alias.asname):
                self._imports[node.module or "", alias.name, alias.asname or ""] = None

    def _use_kit(self, module: str, name: str, where: str, asname: str | None = None) -> bool:
        """Add a name of the kit; return whether it is one."""
        if module.partition(".")[0] != KIT:
            return False
        # A stand-in keeps the name of the original.
        if asname is not None or name not in REPLACEABLE:
            path = f"{module}.{name}".rstrip(".")
            raise NotStaticError(
                f"{where}: {path} has no stand-in outside the harness; expected "
                f"`from conformance.kit import` one of {', '.join(sorted(REPLACEABLE))}"
            )
        self._kit.add(name)
        return True

    def _use_helper(
        self, module: _Module, node: ast.ImportFrom, alias: ast.alias, where: str
    ) -> None:
        """Add a name of a file in the folder of the case."""
        path = module.path.parent / f"{(node.module or '').replace('.', '/')}.py"
        if node.level > 1 or not node.module or alias.asname is not None:
            raise NotStaticError(
                f"{where}: {alias.asname or alias.name} cannot be resolved; import helpers by name "
                "from a file in the folder of the case: `from ._helpers import name`"
            )
        try:
            helper = self.load_module(path)
        except OSError as error:
            raise NotStaticError(f"{where}: {path.name} cannot be read: {error}") from None
        self.use_name(helper, alias.name, where)

    def make_source(self, name: str) -> CaseSource:
        """Return all that was collected."""
        # The case was loaded first; its statements come last, after all that they use.
        case, *helpers = self._modules.values()
        nodes = [(module, node) for module in (*helpers, case) for node in _used_nodes(module)]
        found = [inner for _, node in nodes for inner in _walk_parts(node)]
        return CaseSource(
            imports=tuple(_render_imports(self._imports)),
            definitions=tuple(module.render_statement(node) for module, node in nodes),
            modules=frozenset((of or name).partition(".")[0] for of, name, _ in self._imports),
            kit=frozenset(self._kit),
            env=frozenset(_find_env_uses([node for _, node in nodes], name)),
            keywords=frozenset(k.arg or EVERYTHING for k in found if isinstance(k, ast.keyword)),
            bound=frozenset(bound for _, node in nodes for bound in _bound_names(node)),
            has_future_annotations=any(
                "annotations" in module.bound for module in self._modules.values()
            ),
        )


def _is_type_checking(node: ast.stmt) -> bool:
    """Return whether a statement is never run: two files may import one type by it."""
    return isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")


def _used_nodes(module: _Module) -> list[ast.stmt]:
    # Collected in the order of their uses; a file needs the order of definitions.
    return sorted(module.used, key=lambda node: node.lineno)


def _iter_parts(node: ast.stmt) -> Iterator[ast.AST]:
    """Yield the children of a statement, without decorators of the kit."""
    decorators = getattr(node, "decorator_list", ())
    markers = [decorator for decorator in decorators if get_callee_name(decorator) in MARKERS]
    yield from (child for child in ast.iter_child_nodes(node) if child not in markers)


def _walk_parts(node: ast.stmt) -> Iterator[ast.AST]:
    yield node
    for part in _iter_parts(node):
        yield from ast.walk(part)


def _bound_names(node: ast.stmt) -> Iterator[str]:
    """Yield the names that a statement of a module binds there."""
    # Blocks of a module, e.g. `if` and `with`, bind names of the module; functions and classes do
    # not.
    pending: list[ast.AST] = [node]
    while pending:
        inner = pending.pop()
        yield from _own_bindings(inner)
        if not isinstance(inner, (*_SCOPES, ast.Lambda)):
            pending.extend(ast.iter_child_nodes(inner))


def _own_bindings(node: ast.AST) -> Iterator[str]:
    """Yield the names that a node itself binds, without those that its children bind."""
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
            yield name
        case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
            yield from (alias.asname or alias.name.partition(".")[0] for alias in aliases)
        case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)):
            yield name
        case ast.MatchStar(name=str(name)) | ast.MatchMapping(rest=str(name)):
            yield name
        case _:
            pass


def _find_env_uses(nodes: Iterable[ast.stmt], name: str) -> Iterator[str]:
    """Yield the attributes of `env` that are used, also by functions that take it as argument."""
    inner = [child for node in nodes for child in _walk_parts(node)]
    functions = {node.name: node for node in nodes if isinstance(node, ast.FunctionDef)}
    calls = [
        (node, functions[node.func.id])
        for node in inner
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in functions
    ]
    # Names of parameters that are `env` somewhere, regardless of the function: a parameter of this
    # name in another function only makes more of `env` count as used.
    known = {*_parameter_names(functions[name])[:1]}
    while (
        more := {
            parameter
            for call, function in calls
            for parameter in _find_env_parameters(call, function, known)
        }
        - known
    ):
        known |= more
    explained: set[ast.AST] = set()
    for node in inner:
        match node:
            case ast.Attribute(
                value=ast.Attribute(value=ast.Name(id=root) as base, attr="compat"), attr=attr
            ) if root in known:
                explained.add(base)
                yield f"compat.{attr}"
            case ast.Attribute(value=ast.Name(id=root) as base, attr=attr) if (
                # `env.compat` alone, e.g. assigned to a name, is an unknown use.
                root in known and attr != "compat"
            ):
                explained.add(base)
                yield attr
            case ast.Call() if get_callee_name(node.func) in functions:
                # Its use of the argument is found in the function itself.
                explained.update((*node.args, *(keyword.value for keyword in node.keywords)))
            case _:
                pass
    unexplained = {*inner} - explained
    if any(isinstance(node, ast.Name) and node.id in known for node in unexplained):
        # `env` is stored or passed to a function that is not of the case.
        yield EVERYTHING


def _parameter_names(function: Function) -> list[str]:
    parameters = (*function.args.posonlyargs, *function.args.args)
    return [parameter.arg for parameter in parameters]


def _find_env_parameters(call: ast.Call, function: Function, known: set[str]) -> Iterator[str]:
    """Yield the parameters of a function that are `env` in a call."""
    given = [*zip(_parameter_names(function), call.args, strict=False)]
    given += [(keyword.arg, keyword.value) for keyword in call.keywords if keyword.arg]
    for parameter, value in given:
        if isinstance(value, ast.Name) and value.id in known:
            yield parameter


def _render_imports(found: Iterable[tuple[str, str, str]]) -> Iterator[str]:
    """Yield import statements, plain ones first, names of one module together."""
    together: dict[str, list[str]] = {}
    for of, name, asname in sorted(found):
        alias = f"{name} as {asname}" if asname and asname != name else name
        if of:
            together.setdefault(of, []).append(alias)
        else:
            yield f"import {alias}"
    for of, names in together.items():
        yield f"from {of} import {', '.join(names)}"
