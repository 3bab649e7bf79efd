"""Reads a pasted script: flattens it, makes it deterministic, separates its settings. Pure."""

from __future__ import annotations

import ast
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from conformance.errors import UsageError
from conformance.triage.new.determinism import add_seeds, remove_environment
from conformance.triage.new.script_source import (
    SCOPES,
    ScriptSource,
    find_imports,
    resolve_callee,
    walk_own_nodes,
)
from conformance.triage.new.settings import read_settings

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from conformance.triage.new.settings import ScriptSettings
    from conformance.triage.programs.pasted_report import PastedScript

KIT_NAMES: Final = frozenset({"Observed", "Program", "probe", "program", "deviation"})
"""Names of the kit that a case may need."""
EXITS: Final = frozenset({"sys.exit", "exit", "quit"})
_FUNCTION_ONLY: Final = (ast.Return, ast.Yield, ast.YieldFrom, ast.Await, ast.Global, ast.Nonlocal)
"""Nodes that are valid, or mean what they do, only within a function."""
_REPORTS: Final = frozenset({"print", "traceback.print_exc", *EXITS})
"""Functions called by a handler that only reports an exception."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """A script that can become the body of a case.

    Attributes:
        source: Its statements, without a guard or a function around them.
        removed: Numbers of the statements that a case does not have: imports, settings, docstring.
        bound: Names that it binds, except those of imports.
        settings: Its settings for the whole process.
        echoes: Whether the values of expressions are shown, as at a prompt.
        catches_error: Whether a handler only reports its last exception, which a case must raise.
        doc: Its docstring, empty for none.
        thread: Upstream thread that it names, empty for none.
        notes: Sentences about parts that were left out.
    """

    source: ScriptSource
    removed: Sequence[int]
    bound: frozenset[str]
    settings: ScriptSettings
    echoes: bool
    catches_error: bool
    doc: str
    thread: str
    notes: tuple[str, ...]


def read_script(pasted: PastedScript, name: str) -> Script:
    """Read a script.

    Args:
        pasted: The script as plain Python.
        name: Name of the script, for messages.

    Raises:
        UsageError: If it cannot become the body of a function.
    """
    source = ScriptSource.parse(pasted.text)
    # The guard first: the call of `main()` that `_inline_main` looks for is mostly within it.
    steps = (_remove_guard, _inline_main, _remove_exit, remove_environment, add_seeds)
    for step in steps:
        source = step(source)
    source, catches_error = _remove_handler(source)
    tree = source.tree
    bound = frozenset(_collect_bindings(tree))
    # Refused before any trial: as a case it would fail in every cell.
    _refuse_unmovable(tree, bound, name)
    settings = read_settings(tree, source.names, pasted.variables)
    doc = ast.get_docstring(tree)
    docstring = tree.body[:1] if doc is not None else ()
    # Kept as numbers: drafts edit the text, which makes other nodes.
    removed = [*find_imports(tree), *settings.statements, *docstring]
    return Script(
        source=source, removed=[number for number, node in enumerate(tree.body) if node in removed],
        bound=bound, settings=settings, echoes=pasted.echoes, catches_error=catches_error,
        doc=doc or "", thread=pasted.thread, notes=pasted.notes,
    )  # fmt: skip


def _collect_bindings(tree: ast.AST) -> Iterator[str]:
    """Yield every name that a script binds anywhere, except by imports."""
    for node in ast.walk(tree):
        match node:
            case (
                ast.Name(id=name, ctx=ast.Store() | ast.Del())
                | ast.arg(arg=name)
                | ast.FunctionDef(name=name)
                | ast.AsyncFunctionDef(name=name)
                | ast.ClassDef(name=name)
                | ast.ExceptHandler(name=str(name))
            ):
                # Scopes are not distinguished: a name that is bound anywhere counts, which is only
                # too careful.
                yield name
            case _:
                pass


def _refuse_unmovable(tree: ast.Module, bound: frozenset[str], name: str) -> None:
    """Refuse a script that cannot become the body of a function in a case file."""
    # The body would hide the kit, since names of a function are local to all of it.
    if taken := sorted(KIT_NAMES & bound):
        raise UsageError(f"{name}: binds {', '.join(taken)}, which a case needs; rename it")
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and any(alias.name == "*" for alias in node.names):
            raise UsageError(
                f"{name}: from {node.module} import *: not allowed in a function; import each "
                "name that is used"
            )
        if isinstance(node, ast.ImportFrom) and node.level:
            raise UsageError(f"{name}: has a relative import; put all of it into one script")


def _remove_guard(source: ScriptSource) -> ScriptSource:
    """Return a script without its `if __name__ == "__main__":`."""
    for node in source.tree.body:
        match node:
            case ast.If(test=ast.Compare(left=ast.Name(id="__name__"), ops=[ast.Eq()]), orelse=[]):
                return source.replace({node: source.render(node.body)})
            case _:
                pass
    return source


def _inline_main(source: ScriptSource) -> ScriptSource:
    """Return a script with the body of `main` in place of its only call, the last statement."""
    tree = source.tree
    last = tree.body[-1]
    uses = Counter(node.id for node in ast.walk(tree) if isinstance(node, ast.Name))
    match last:
        case ast.Expr(value=ast.Call(func=ast.Name(id=name), args=[], keywords=[])):
            pass
        case ast.Expr(value=ast.Call(args=[ast.Call(func=ast.Name(id=name), args=[])]) as call) if (
            resolve_callee(call, source.names) in EXITS
        ):
            pass
        case _:
            return source
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name == name and uses[name] == 1:
            # The docstring of `main` is no statement of the script.
            body = node.body[1:] if ast.get_docstring(node) else node.body
            outside = (other for other in tree.body if not isinstance(other, SCOPES))
            is_bound = any(isinstance(inner, _FUNCTION_ONLY) for inner in walk_own_nodes(node.body))
            # A local that shadows a global would overwrite it.
            shadows = _assigned_names([node]) & _assigned_names(outside)
            if body and not (is_bound or shadows or node.decorator_list or ast.unparse(node.args)):
                return source.replace({node: "", last: source.render(body)})
    return source


def _assigned_names(nodes: Iterable[ast.AST]) -> set[str]:
    names = (inner for node in nodes for inner in ast.walk(node) if isinstance(inner, ast.Name))
    return {name.id for name in names if isinstance(name.ctx, ast.Store)}


def _remove_exit(source: ScriptSource) -> ScriptSource:
    """Return a script without a plain exit at its end, which shows nothing."""
    match source.tree.body:
        # `SystemExit` would end the case before it returns; another status is observed.
        case [_, *_, ast.Expr(value=ast.Call(args=[] | [ast.Constant(value=0 | None)]) as call)]:
            if resolve_callee(call, source.names) in EXITS:
                return source.replace({source.tree.body[-1]: ""})
        case _:
            pass
    return source


def _remove_handler(source: ScriptSource) -> tuple[ScriptSource, bool]:
    """Return a script that raises the exception that it only reports at its end.

    Returns:
        The script, and whether it was changed.
    """
    last = source.tree.body[-1]
    # Only at the end: a script continues after an earlier `try`, so that its case must catch, too.
    if not isinstance(last, ast.Try) or last.finalbody:
        return source, False
    for node in (inner for handler in last.handlers for inner in handler.body):
        # A handler that does anything else is a part of the program.
        is_report = isinstance(node, ast.Expr) and (
            resolve_callee(node.value, source.names) in _REPORTS
        )
        if not (is_report or isinstance(node, ast.Pass | ast.Raise)):
            return source, False
    return source.replace({last: source.render([*last.body, *last.orelse])}), True
