"""A script without its prints of facts of the environment, which a case must not observe. Pure."""

from __future__ import annotations

import ast
from collections import Counter
from typing import TYPE_CHECKING, Final

from conformance.triage.new.edits import Edits
from conformance.triage.new.names import called, dotted, imported_names

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_ATTRIBUTES: Final = (".__version__", ".__version_info__")
_PATHS: Final = frozenset({
    "sys.version", "sys.version_info", "sys.executable", "sys.platform", "os.environ",
    "jax.version", "jaxlib.version",
})  # fmt: skip
_CALLS: Final = frozenset({
    "jax.devices", "jax.local_devices", "jax.default_backend", "jax.print_environment_info",
    "time.time", "time.time_ns", "time.perf_counter", "time.perf_counter_ns", "time.monotonic",
    "time.process_time", "datetime.datetime.now", "importlib.metadata.version", "os.getcwd",
    "os.getpid", "id",
})  # fmt: skip
_MODULES: Final = ("platform.",)
_PASSING: Final = frozenset({"str", "repr", "float", "int", "round", "format", "len", "list"})
"""Functions of a fact of the environment that are one, too."""


def without_environment(text: str) -> str:
    """Return a script that prints no facts of its environment.

    Of a print, the versions, devices and times go; a formatted text that holds one gives way to the
    other values that it formats.

    Args:
        text: Python.
    """
    tree = ast.parse(text)
    names = imported_names(tree)
    facts = _Facts(names, _names_of_facts(tree, names))
    edits = Edits(text)
    for node in ast.walk(tree):
        if not isinstance(node, ast.Expr):
            continue
        if called(node.value, names) == "print":
            assert isinstance(node.value, ast.Call)  # noqa: S101 - it is one
            kept = _kept(node.value.args, facts)
            if kept is not None:
                new = ast.Call(func=node.value.func, args=kept, keywords=node.value.keywords)
                _replace(edits, node, ast.unparse(new) if kept else "pass")
        elif facts.is_fact(node.value):
            _replace(edits, node, "pass")
    return edits.applied()


def _replace(edits: Edits, node: ast.Expr, text: str) -> None:
    edits.replace(edits.start(node), edits.end(node), text)


def _kept(values: Iterable[ast.expr], facts: _Facts) -> list[ast.expr] | None:
    """Return what a print shows without facts and the texts beside them; None for all of it."""
    kept: list[ast.expr] = []
    found = False
    for value in values:
        if facts.is_fact(value):
            found = True
        elif isinstance(value, ast.JoinedStr) and any(map(facts.is_fact, _formatted(value))):
            found = True
            kept += [one for one in _formatted(value) if not facts.is_fact(one)]
        else:
            kept.append(value)
    if not found:
        return None
    silent = all(isinstance(one, ast.Constant) for one in kept)
    return [] if silent else [one for one in kept if not isinstance(one, ast.Constant)]


def _formatted(text: ast.JoinedStr) -> list[ast.expr]:
    return [part.value for part in text.values if isinstance(part, ast.FormattedValue)]


def _names_of_facts(tree: ast.AST, names: Mapping[str, str]) -> frozenset[str]:
    """Return the names that are bound to facts of the environment, and to nothing else."""
    values: dict[str, list[ast.expr]] = {}
    bindings: Counter[str] = Counter()
    for node in ast.walk(tree):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                values.setdefault(name, []).append(value)
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                bindings[name] += 1
            case _:
                pass
    plain = {name: given for name, given in values.items() if len(given) == bindings[name]}
    found: frozenset[str] = frozenset()
    while True:
        facts = _Facts(names, found)
        more = found | {name for name, given in plain.items() if all(map(facts.is_fact, given))}
        if more == found:
            return found
        found = more


class _Facts:
    """Knows facts of the environment.

    Args:
        names: What imported names stand for.
        own: Names of the script that are bound to such facts.
    """

    def __init__(self, names: Mapping[str, str], own: frozenset[str]) -> None:
        self._names, self._own = names, own

    def is_fact(self, node: ast.expr) -> bool:
        """Say whether an expression is made of facts of the environment, and plain constants."""
        return self._state(node) is True

    def _state(self, node: ast.expr) -> bool | None:
        """Return whether an expression is a fact, None for a constant."""
        path = dotted(node.func if isinstance(node, ast.Call) else node, self._names)
        if self._is_named(path, call=isinstance(node, ast.Call)):
            return True
        if isinstance(node, ast.Name):
            return node.id in self._own
        parts = _parts(node)
        if parts is None:
            return False
        states = {self._state(part) for part in parts} - {None}
        return None if not states else states == {True}

    def _is_named(self, path: str, *, call: bool) -> bool:
        if path.endswith(_ATTRIBUTES) or path in _PATHS or path.startswith(_MODULES):
            return True
        return call and path in _CALLS


def _parts(node: ast.expr) -> list[ast.expr] | None:
    """Return what an expression says no more than; None where it does something else."""
    parts: list[ast.expr] | None = None
    match node:
        case ast.Constant():
            parts = []
        case ast.Call(func=ast.Name(id=name), args=args) if name in _PASSING:
            parts = args
        case ast.Call(func=ast.Attribute(value=value), args=args):
            parts = [value, *args]
        case ast.Attribute() | ast.Subscript() | ast.FormattedValue():
            parts = [node.value]
        case ast.BinOp(left=left, right=right):
            parts = [left, right]
        case ast.JoinedStr() | ast.Tuple() | ast.List():
            parts = node.values if isinstance(node, ast.JoinedStr) else node.elts
        case _:
            pass
    return parts
