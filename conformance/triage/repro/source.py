"""What a case is made of, read from its file without importing it: nothing of the kit is left.

The text of functions stays as written, comments included. Taken are the case's function, and
whatever of its file and of the helpers beside it that it comes to use, in the order they stand.
"""

from __future__ import annotations

import ast
import builtins
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from conformance.corpus.project import FOR_CASES
from conformance.corpus.python_source import parse
from conformance.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    Read = Callable[[Path], str]
    Function = ast.FunctionDef | ast.AsyncFunctionDef

KIT: Final = "conformance"
MARKERS: Final = frozenset({"program", "probe"})
STOOD_FOR: Final = frozenset({"Program", "Observed", "raises", "Raises", "CaseError"})
"""Names of the kit that a file of its own has something plain for."""
EVERYTHING: Final = "*"
"""Use of the surroundings that cannot be told: all of them are needed."""
_SCOPES: Final = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_GIVEN: Final = frozenset({*dir(builtins), "__name__", "__doc__", "__qualname__", "__module__"})


class NotStaticError(UsageError):
    """Something that a case uses cannot be found by reading its file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseSource:
    """What a case is made of.

    Attributes:
        imports: Its imports, one statement each.
        definitions: Texts of the statements, in order.
        modules: Top-level names of the packages imported.
        kit: Names of the kit that are used, of `STOOD_FOR`.
        env: What is used of the surroundings: `mesh`, `compat.shard_map`, ...; `EVERYTHING` where
            that cannot be told.
        keywords: Keywords of the calls of `Program` and `Observed`, and of `env.mesh`.
        bound: Names that the statements bind in the file.
        future: Whether annotations are not to be evaluated.
    """

    imports: tuple[str, ...]
    definitions: tuple[str, ...]
    modules: frozenset[str]
    kit: frozenset[str]
    env: frozenset[str]
    keywords: frozenset[str]
    bound: frozenset[str]
    future: bool


@dataclass(eq=False)
class _Module:
    """A file that is read from: its statements by the names they bind."""

    path: Path
    text: str
    tree: ast.Module
    bound: dict[str, list[ast.stmt]] = field(default_factory=dict)
    taken: dict[ast.stmt, None] = field(default_factory=dict)

    def statement(self, node: ast.stmt) -> str:
        """Return the text of a statement, decorators of the kit left out."""
        lines = self.text.splitlines()
        kept = [
            "\n".join(lines[one.lineno - 1 : one.end_lineno])
            for one in getattr(node, "decorator_list", ())
            if _called(one) not in MARKERS
        ]
        return "\n".join([*kept, *lines[node.lineno - 1 : node.end_lineno]])


def extract(file: Path, name: str, read: Read) -> CaseSource:
    """Return what a case is made of.

    Args:
        file: File of the case.
        name: Name of its function.
        read: Returns the text of a file.

    Raises:
        NotStaticError: If a name it uses cannot be found; the message says which and where.
    """
    walk = _Walk(read)
    module = walk.module(file)
    walk.take(module, name, f"{file.name}")
    return walk.source(name)


class _Walk:
    """From the case's function to all that it uses."""

    def __init__(self, read: Read) -> None:
        self._read = read
        self._modules: dict[Path, _Module] = {}
        self._imports: dict[tuple[str, str, str], None] = {}
        self._kit: set[str] = set()
        self._owners: dict[str, tuple[Path, str]] = {}

    def module(self, path: Path) -> _Module:
        """Return a file, read once."""
        if path not in self._modules:
            text = self._read(path)
            module = _Module(path, text, parse(text, str(path)))
            for node in module.tree.body:
                for name in _binds(node):
                    module.bound.setdefault(name, []).append(node)
            self._modules[path] = module
            for node in module.tree.body[bool(ast.get_docstring(module.tree)) :]:
                if isinstance(node, ast.Expr):  # done for what it does, not for a name
                    self._statement(module, node)
        return self._modules[path]

    def take(self, module: _Module, name: str, where: str) -> None:
        """Take what binds a name, and whatever that uses."""
        if name not in module.bound:
            raise NotStaticError(
                f"{where}: {name} cannot be found by reading {module.path.name}; "
                "import or define it by its name at the top level of the file"
            )
        for node in module.bound[name]:
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                self._import(module, node, name)
            else:
                if not _is_for_types(node):
                    self._owned(module, name)
                self._statement(module, node)

    def _owned(self, module: _Module, name: str) -> None:
        """Two files may not mean different things by one name."""
        path, _ = self._owners.setdefault(name, (module.path, ""))
        if path != module.path:
            raise NotStaticError(
                f"{name} is something else in {module.path.name} than in {path.name}; "
                "rename one of them, for both come to stand in one file"
            )

    def _statement(self, module: _Module, node: ast.stmt) -> None:
        if node in module.taken:
            return
        module.taken[node] = None
        inner = {name for one in ast.walk(node) for name in _own_bindings(one)}
        for one in _without_markers(node):
            for used in ast.walk(one):
                if not isinstance(used, ast.Name) or not isinstance(used.ctx, ast.Load):
                    continue
                where = f"{module.path.name}:{used.lineno}"
                if used.id == "__file__":
                    raise NotStaticError(f"{where}: a file of its own has no files beside it; "
                                         "put what is read into the case")  # fmt: skip
                if used.id in module.bound or (used.id not in inner and used.id not in _GIVEN):
                    self.take(module, used.id, where)

    def _import(self, module: _Module, node: ast.Import | ast.ImportFrom, name: str) -> None:
        where = f"{module.path.name}:{node.lineno}"
        for alias in node.names:
            if (alias.asname or alias.name.partition(".")[0]) != name:
                continue
            if isinstance(node, ast.ImportFrom) and node.module in FOR_CASES and not alias.asname:
                self.take(self.module(FOR_CASES[node.module]), alias.name, where)
            elif isinstance(node, ast.ImportFrom) and node.level:
                self._helper(module, node, alias, where)
            elif isinstance(node, ast.Import):
                self._of_kit(alias.name, "", where)
                self._imports["", alias.name, alias.asname or ""] = None
            elif not self._of_kit(node.module or "", alias.name, where, alias.asname):
                self._imports[node.module or "", alias.name, alias.asname or ""] = None

    def _of_kit(self, module: str, name: str, where: str, asname: str | None = None) -> bool:
        if module.partition(".")[0] != KIT:
            return False
        if asname is not None or name not in STOOD_FOR:
            said = f"{module}.{name}".rstrip(".")
            raise NotStaticError(
                f"{where}: {said} has nothing plain to stand for it; expected "
                f"`from conformance.kit import` one of {', '.join(sorted(STOOD_FOR))}"
            )
        self._kit.add(name)
        return True

    def _helper(self, module: _Module, node: ast.ImportFrom, alias: ast.alias, where: str) -> None:
        """Take a name from a file beside the case."""
        path = module.path.parent / f"{(node.module or '').replace('.', '/')}.py"
        if node.level > 1 or not node.module or alias.asname is not None:
            raise NotStaticError(
                f"{where}: {alias.asname or alias.name} cannot be followed; expected helpers by "
                "their names from a file beside the case: `from ._helpers import name`"
            )
        try:
            helper = self.module(path)
        except OSError as error:
            raise NotStaticError(f"{where}: {path.name} cannot be read: {error}") from None
        self.take(helper, alias.name, where)

    def source(self, name: str) -> CaseSource:
        """Return all that was taken."""
        case, *helpers = self._modules.values()
        nodes = [(module, node) for module in (*helpers, case) for node in _ordered(module)]
        found = [inner for _, node in nodes for inner in _walked(node)]
        return CaseSource(
            imports=tuple(_import_lines(self._imports)),
            definitions=tuple(module.statement(node) for module, node in nodes),
            modules=frozenset((of or what).partition(".")[0] for of, what, _ in self._imports),
            kit=frozenset(self._kit),
            env=frozenset(_uses([node for _, node in nodes], name)),
            keywords=frozenset(k.arg or EVERYTHING for k in found if isinstance(k, ast.keyword)),
            bound=frozenset(bound for _, node in nodes for bound in _binds(node)),
            future=any("annotations" in module.bound for module in self._modules.values()),
        )


def _is_for_types(node: ast.stmt) -> bool:
    """Say whether a statement is never run: what it binds in two files are names of types."""
    return isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")


def _ordered(module: _Module) -> list[ast.stmt]:
    return sorted(module.taken, key=lambda node: node.lineno)


def _called(node: ast.expr) -> str:
    target = node.func if isinstance(node, ast.Call) else node
    return target.attr if isinstance(target, ast.Attribute) else getattr(target, "id", "")


def _without_markers(node: ast.stmt) -> Iterator[ast.AST]:
    """Yield the parts of a statement, but for decorators of the kit."""
    left_out = [one for one in getattr(node, "decorator_list", ()) if _called(one) in MARKERS]
    yield from (one for one in ast.iter_child_nodes(node) if one not in left_out)


def _walked(node: ast.stmt) -> Iterator[ast.AST]:
    yield node
    for part in _without_markers(node):
        yield from ast.walk(part)


def _binds(node: ast.stmt) -> Iterator[str]:
    """Yield the names that a statement of a module binds there."""
    pending: list[ast.AST] = [node]
    while pending:
        one = pending.pop()
        yield from _own_bindings(one)
        if not isinstance(one, (*_SCOPES, ast.Lambda)):
            pending.extend(ast.iter_child_nodes(one))


def _own_bindings(node: ast.AST) -> Iterator[str]:
    """Yield the names that a node itself binds, without those below it."""
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


def _uses(nodes: Iterable[ast.stmt], name: str) -> Iterator[str]:
    """Yield what is used of the surroundings, under whatever name they are handed on."""
    inner = [one for node in nodes for one in _walked(node)]
    functions = {node.name: node for node in nodes if isinstance(node, ast.FunctionDef)}
    calls = [
        (one, functions[one.func.id])
        for one in inner
        if isinstance(one, ast.Call) and isinstance(one.func, ast.Name) and one.func.id in functions
    ]
    known = {*_parameters(functions[name])[:1]}
    while more := {to for call, function in calls for to in _handed(call, function, known)} - known:
        known |= more
    explained: set[ast.AST] = set()
    for one in inner:
        match one:
            case ast.Attribute(
                value=ast.Attribute(value=ast.Name(id=root) as base, attr="compat"), attr=attr
            ) if root in known:
                explained.add(base)
                yield f"compat.{attr}"
            case ast.Attribute(value=ast.Name(id=root) as base, attr=attr) if (
                root in known and attr != "compat"
            ):
                explained.add(base)
                yield attr
            case ast.Call() if _called(one.func) in functions:
                explained.update((*one.args, *(keyword.value for keyword in one.keywords)))
            case _:
                pass
    if any(isinstance(one, ast.Name) and one.id in known for one in {*inner} - explained):
        yield EVERYTHING


def _parameters(function: Function) -> list[str]:
    arguments = function.args
    return [one.arg for one in (*arguments.posonlyargs, *arguments.args)]


def _handed(call: ast.Call, function: Function, known: set[str]) -> Iterator[str]:
    """Yield the parameters of a function that a call gives the surroundings to."""
    given = [*zip(_parameters(function), call.args, strict=False)]
    given += [(keyword.arg, keyword.value) for keyword in call.keywords if keyword.arg]
    for parameter, value in given:
        if isinstance(value, ast.Name) and value.id in known:
            yield parameter


def _import_lines(found: Iterable[tuple[str, str, str]]) -> Iterator[str]:
    """Yield import statements, plain ones first, names of one module together."""
    together: dict[str, list[str]] = {}
    for of, name, asname in sorted(found):
        told = f"{name} as {asname}" if asname and asname != name else name
        if of:
            together.setdefault(of, []).append(told)
        else:
            yield f"import {told}"
    for of, names in together.items():
        yield f"from {of} import {', '.join(names)}"
