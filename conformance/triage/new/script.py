"""A pasted script, read: what it imports, sets, does, and shows. Pure."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from conformance.errors import UsageError
from conformance.triage.new.edits import body_text
from conformance.triage.new.environment import without_environment
from conformance.triage.new.names import bound_names, called, imported_names, own_nodes
from conformance.triage.new.seeds import seeded
from conformance.triage.new.settings import settings_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from conformance.triage.new.settings import Settings
    from conformance.triage.programs.paste import Pasted

OURS: Final = frozenset({"Observed", "Program", "probe", "program", "deviation"})
"""Names of the kit that a case needs."""
EXITS: Final = frozenset({"sys.exit", "exit", "quit"})
_LEAVES: Final = (ast.Return, ast.Yield, ast.YieldFrom, ast.Await, ast.Global, ast.Nonlocal)
"""What only the inside of a function can hold."""
_SAYS: Final = frozenset({"print", "traceback.print_exc", *EXITS})
"""What a handler does that only tells of an exception."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """A script that was read.

    Attributes:
        text: Its text: one block of statements, without a guard or a function around them.
        tree: The same, parsed.
        names: What imported names stand for.
        bound: Names that it binds.
        settings: What it sets for the whole process.
        echoes: Whether expressions are shown.
        caught: Whether it caught what it showed: a case is to raise it.
        doc: What it says of itself, empty for nothing.
        thread: Upstream thread that it names.
        notes: What was left out.
    """

    text: str
    tree: ast.Module
    names: Mapping[str, str]
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
    text = seeded(without_environment(_unended(_inlined(_unguarded(pasted.text)))))
    text, caught = _uncaught(text)
    tree = ast.parse(text)
    doc = ast.get_docstring(tree) or ""
    bound = frozenset(bound_names(tree))
    _refuse(tree, bound, name)
    names = imported_names(tree)
    return Script(
        text=text,
        tree=tree,
        names=names,
        bound=bound,
        settings=settings_of(tree, names, pasted.variables),
        echoes=pasted.echoes,
        caught=caught,
        doc=doc,
        thread=pasted.thread,
        notes=pasted.notes,
    )


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


def _replaced(text: str, node: ast.stmt, inner: str) -> str:
    """Return a text with a statement of it replaced."""
    lines = text.splitlines()
    return "\n".join([*lines[: node.lineno - 1], inner, *lines[node.end_lineno :]]) + "\n"


def _unguarded(text: str) -> str:
    """Return a script whose `if __name__ == "__main__":` is gone."""
    for node in ast.parse(text).body:
        match node:
            case ast.If(test=ast.Compare(left=ast.Name(id="__name__"), ops=[ast.Eq()]), orelse=[]):
                return _replaced(text, node, body_text(text, node.body))
            case _:
                pass
    return text


def _inlined(text: str) -> str:
    """Return a script that is no longer one function and its call at the end."""
    tree = ast.parse(text)
    names = imported_names(tree)
    last = tree.body[-1]
    name = _plain_call(last, names)
    used = sum(isinstance(node, ast.Name) and node.id == name for node in ast.walk(tree))
    for node in tree.body:
        if not (isinstance(node, ast.FunctionDef) and node.name == name and used == 1):
            continue
        own = (one for statement in node.body for one in _own(statement))
        leaves = any(isinstance(one, _LEAVES) for one in own)
        given = node.args.args or node.args.vararg or node.args.kwarg or node.args.kwonlyargs
        body = node.body[1:] if ast.get_docstring(node) else node.body
        local = _stored(node) & _global(tree)
        if not (leaves or given or node.decorator_list or local) and body:
            text = _replaced(text, last, body_text(text, body))
            return _replaced(text, node, "")
    return text


def _own(statement: ast.stmt) -> Iterator[ast.AST]:
    """Yield what runs where a statement stands: nothing of the functions that it defines."""
    scopes = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return iter(()) if isinstance(statement, scopes) else own_nodes(statement)


def _stored(node: ast.AST) -> set[str]:
    names = (one for one in ast.walk(node) if isinstance(one, ast.Name))
    return {one.id for one in names if isinstance(one.ctx, ast.Store)}


def _global(tree: ast.Module) -> set[str]:
    """Return the names that statements outside of functions bind."""
    plain = (node for node in tree.body if not isinstance(node, ast.FunctionDef | ast.ClassDef))
    return {name for node in plain for name in _stored(node)}


def _plain_call(node: ast.stmt, names: Mapping[str, str]) -> str:
    """Return the name of the function that a statement calls with nothing, empty for none."""
    match node:
        case ast.Expr(value=ast.Call(func=ast.Name(id=name), args=[], keywords=[])):
            return name
        case ast.Expr(value=ast.Call(args=[ast.Call(func=ast.Name(id=name), args=[])]) as call):
            return name if called(call, names) in EXITS else ""
        case _:
            return ""


def _unended(text: str) -> str:
    """Return a script without a plain exit at its end, which says nothing."""
    tree = ast.parse(text)
    match tree.body[-1]:
        case ast.Expr(value=ast.Call(args=[] | [ast.Constant(value=0 | None)]) as call):
            if called(call, imported_names(tree)) in EXITS and len(tree.body) > 1:
                return _replaced(text, tree.body[-1], "")
        case _:
            pass
    return text


def _uncaught(text: str) -> tuple[str, bool]:
    """Return a script that raises at its end what it only told of, and whether it is another."""
    tree = ast.parse(text)
    last = tree.body[-1]
    names = imported_names(tree)
    if not isinstance(last, ast.Try) or last.finalbody:
        return text, False
    for handler in last.handlers:
        for node in handler.body:
            tells = isinstance(node, ast.Expr) and called(node.value, names) in _SAYS
            if not (tells or isinstance(node, ast.Pass | ast.Raise)):
                return text, False
    return _replaced(text, last, body_text(text, [*last.body, *last.orelse])), True
