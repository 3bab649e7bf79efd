"""A script without its prints of facts of the environment, which a case must not observe. Pure."""

from __future__ import annotations

import ast
from collections import Counter
from typing import TYPE_CHECKING, Final

from conformance.triage.new.source import called, dotted

if TYPE_CHECKING:
    from collections.abc import Iterable

    from conformance.triage.new.source import ScriptSource

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


def remove_environment(source: ScriptSource) -> ScriptSource:
    """Return a script that prints no facts of its environment.

    Of a print, the versions, devices and times go; a formatted text that holds one gives way to the
    other values that it formats.

    Args:
        source: The script.
    """
    facts = _Facts(source)
    changes: dict[ast.stmt, str] = {}
    for node in ast.walk(source.tree):
        match node:
            case ast.Expr(value=ast.Call(args=args) as call) if (
                called(call, source.names) == "print"
            ):
                left = _without_facts(args, facts)
                if left is not None:
                    new = ast.Call(func=call.func, args=left, keywords=call.keywords)
                    changes[node] = ast.unparse(new) if left else "pass"
            case ast.Expr(value=value) if facts.is_fact(value):
                changes[node] = "pass"
            case _:
                pass
    return source.replace(changes)


def _without_facts(values: Iterable[ast.expr], facts: _Facts) -> list[ast.expr] | None:
    """Return the arguments of a print without facts and their labels; None for all of them."""
    left: list[ast.expr] = []
    found = False
    for value in values:
        parts = [value]
        if isinstance(value, ast.JoinedStr):
            formatted = [one.value for one in value.values if isinstance(one, ast.FormattedValue)]
            parts = formatted if any(map(facts.is_fact, formatted)) else parts
        without = [part for part in parts if not facts.is_fact(part)]
        found |= len(without) < len(parts)
        left += without
    return [one for one in left if not isinstance(one, ast.Constant)] if found else None


class _Facts:
    """Knows facts of the environment.

    Args:
        source: The script.
    """

    def __init__(self, source: ScriptSource) -> None:
        self._names = source.names
        self._own: set[str] = set()
        values: dict[str, list[ast.expr]] = {}
        bindings: Counter[str] = Counter()
        for node in ast.walk(source.tree):
            match node:
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    values.setdefault(name, []).append(value)
                case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                    bindings[name] += 1
                case _:
                    pass
        # A name that is bound to facts alone is one, too; so may be one that is bound to it.
        plain = {name: given for name, given in values.items() if len(given) == bindings[name]}
        while more := {
            name
            for name, given in plain.items()
            if name not in self._own and all(map(self.is_fact, given))
        }:
            self._own |= more

    def is_fact(self, node: ast.expr) -> bool:
        """Say whether an expression is made of facts of the environment, and plain constants."""
        return self._state(node) is True

    def _state(self, node: ast.expr) -> bool | None:
        """Return whether an expression is a fact, None for a constant."""
        call = isinstance(node, ast.Call)
        path = dotted(node.func if isinstance(node, ast.Call) else node, self._names)
        if path.endswith(_ATTRIBUTES) or path in _PATHS or path.startswith(_MODULES):
            return True
        if call and path in _CALLS:
            return True
        if isinstance(node, ast.Name):
            return node.id in self._own
        parts = _parts(node)
        if parts is None:
            return False
        states = {self._state(part) for part in parts} - {None}
        return states == {True} if states else None


def _parts(node: ast.expr) -> list[ast.expr] | None:
    """Return the expressions that one only puts together; None where it does something else."""
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
        case ast.JoinedStr(values=inner) | ast.Tuple(elts=inner) | ast.List(elts=inner):
            parts = inner
        case _:
            pass
    return parts
