"""A pasted script, read: what it imports, sets and does, flat and without its environment. Pure."""

from __future__ import annotations

import ast
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from conformance.errors import UsageError
from conformance.triage.new.environment import remove_environment
from conformance.triage.new.seeds import add_seeds
from conformance.triage.new.settings import read_settings
from conformance.triage.new.source import SCOPES, ScriptSource, called, find_imports, walk_own_nodes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from conformance.triage.new.settings import Settings
    from conformance.triage.programs.pasted_report import Pasted

OURS: Final = frozenset({"Observed", "Program", "probe", "program", "deviation"})
"""Names of the kit that a case needs."""
EXITS: Final = frozenset({"sys.exit", "exit", "quit"})
_LEAVES: Final = (ast.Return, ast.Yield, ast.YieldFrom, ast.Await, ast.Global, ast.Nonlocal)
"""Statements that only the inside of a function can hold."""
_REPORTS: Final = frozenset({"print", "traceback.print_exc", *EXITS})
"""Functions of a handler that only reports an exception."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """A script that was read.

    Attributes:
        source: Its statements, without a guard or a function around them.
        gone: Numbers of the statements that a case does not have: imports, settings, docstring.
        bound: Names that it binds, apart from those of imports.
        settings: What it sets for the whole process.
        echoes: Whether expressions are shown.
        caught: Whether it caught what it showed: a case is to raise it.
        doc: What it says of itself, empty for nothing.
        thread: Upstream thread that it names.
        notes: What was left out.
    """

    source: ScriptSource
    gone: Sequence[int]
    bound: frozenset[str]
    settings: Settings
    echoes: bool
    caught: bool
    doc: str
    thread: str
    notes: tuple[str, ...]


def read_script(pasted: Pasted, name: str) -> Script:
    """Return a script, read.

    Args:
        pasted: The script as plain Python.
        name: What it is called, for messages.

    Raises:
        UsageError: If it cannot be the inside of a function.
    """
    source = ScriptSource.parse(pasted.text)
    for step in (_unguarded, _inlined, _without_exit, remove_environment, add_seeds):
        source = step(source)
    source, caught = _uncaught(source)
    tree = source.tree
    bound = frozenset(_bound_names(tree))
    _refuse(tree, bound, name)
    settings = read_settings(tree, source.names, pasted.variables)
    doc = ast.get_docstring(tree)
    gone = [*find_imports(tree), *settings.statements, *(tree.body[:1] if doc is not None else ())]
    return Script(
        source=source,
        gone=[number for number, node in enumerate(tree.body) if node in gone],
        bound=bound,
        settings=settings,
        echoes=pasted.echoes,
        caught=caught,
        doc=doc or "",
        thread=pasted.thread,
        notes=pasted.notes,
    )


def _bound_names(tree: ast.AST) -> Iterator[str]:
    """Yield every name that a script binds anywhere, except by imports."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()) | ast.arg(arg=name):
                yield name
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield name
            case ast.ClassDef(name=name) | ast.ExceptHandler(name=str(name)):
                yield name
            case _:
                pass


def _refuse(tree: ast.Module, bound: frozenset[str], name: str) -> None:
    if taken := sorted(OURS & bound):
        raise UsageError(f"{name}: binds {', '.join(taken)}, which a case needs; rename it")
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and any(one.name == "*" for one in node.names):
            raise UsageError(
                f"{name}: from {node.module} import *: cannot stand in a function; name what is "
                "used"
            )
        if isinstance(node, ast.ImportFrom) and node.level:
            raise UsageError(f"{name}: imports from beside it; put all of it into one script")


def _unguarded(source: ScriptSource) -> ScriptSource:
    """Return a script whose `if __name__ == "__main__":` is gone."""
    for node in source.tree.body:
        match node:
            case ast.If(test=ast.Compare(left=ast.Name(id="__name__"), ops=[ast.Eq()]), orelse=[]):
                return source.replace({node: source.code(node.body)})
            case _:
                pass
    return source


def _inlined(source: ScriptSource) -> ScriptSource:
    """Return a script that is no longer one function and its call at the end."""
    tree = source.tree
    last = tree.body[-1]
    names = Counter(node.id for node in ast.walk(tree) if isinstance(node, ast.Name))
    match last:
        case ast.Expr(value=ast.Call(func=ast.Name(id=name), args=[], keywords=[])):
            pass
        case ast.Expr(value=ast.Call(args=[ast.Call(func=ast.Name(id=name), args=[])]) as call) if (
            called(call, source.names) in EXITS
        ):
            pass
        case _:
            return source
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name == name and names[name] == 1:
            body = node.body[1:] if ast.get_docstring(node) else node.body
            outer = (one for one in tree.body if not isinstance(one, SCOPES))
            leaves = any(isinstance(one, _LEAVES) for one in walk_own_nodes(node.body))
            local = _stored([node]) & _stored(outer)
            if body and not (leaves or local or node.decorator_list or ast.unparse(node.args)):
                return source.replace({node: "", last: source.code(body)})
    return source


def _stored(nodes: Iterable[ast.AST]) -> set[str]:
    names = (one for node in nodes for one in ast.walk(node) if isinstance(one, ast.Name))
    return {one.id for one in names if isinstance(one.ctx, ast.Store)}


def _without_exit(source: ScriptSource) -> ScriptSource:
    """Return a script without a plain exit at its end, which shows nothing."""
    match source.tree.body:
        case [_, *_, ast.Expr(value=ast.Call(args=[] | [ast.Constant(value=0 | None)]) as call)]:
            if called(call, source.names) in EXITS:
                return source.replace({source.tree.body[-1]: ""})
        case _:
            pass
    return source


def _uncaught(source: ScriptSource) -> tuple[ScriptSource, bool]:
    """Return a script that raises at its end what it only reported, and whether it is another."""
    last = source.tree.body[-1]
    if not isinstance(last, ast.Try) or last.finalbody:
        return source, False
    for node in (one for handler in last.handlers for one in handler.body):
        reports = isinstance(node, ast.Expr) and called(node.value, source.names) in _REPORTS
        if not (reports or isinstance(node, ast.Pass | ast.Raise)):
            return source, False
    return source.replace({last: source.code([*last.body, *last.orelse])}), True
