"""Makes a script deterministic: removes facts of the environment, fixes seeds. Pure.

Otherwise each release would seem to change the output of the script.
"""

from __future__ import annotations

import ast
from collections import Counter
from typing import TYPE_CHECKING, Final

from conformance.triage.new.script_source import resolve_callee, resolve_path

if TYPE_CHECKING:
    from collections.abc import Iterable

    from conformance.triage.new.script_source import ScriptSource

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
_MODULES: Final = "platform."
# Other functions may compute anything with a fact, e.g. choose a branch by a version.
_CONVERSIONS: Final = frozenset({"str", "repr", "float", "int", "round", "format", "len", "list"})
"""Functions whose result is a fact of the environment if their argument is."""
_GENERATORS: Final = frozenset({
    "numpy.random.default_rng", "numpy.random.RandomState", "random.Random",
})  # fmt: skip
"""Functions that make a generator from a seed."""
# `jax.random` is not among them: its keys are seeds.
_RANDOM_MODULES: Final = ("numpy.random", "random")
"""Modules whose functions draw from one shared generator, which their `seed` sets."""
_NOT_DRAWING: Final = frozenset({
    "default_rng", "RandomState", "Random", "seed", "get_state", "set_state", "getstate",
    "setstate", "Generator", "SeedSequence", "PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64",
    "SystemRandom",
})  # fmt: skip
"""Names of these modules that do not draw from the shared generator."""


def remove_environment(source: ScriptSource) -> ScriptSource:
    """Return a script that prints no facts of its environment.

    Versions, devices and times are removed from each `print`. A formatted string that contains one
    is replaced by the other values that it formats.

    Args:
        source: The script.
    """
    facts = _EnvironmentFacts(source)
    changes: dict[ast.stmt, str] = {}
    for node in ast.walk(source.tree):
        match node:
            case ast.Expr(value=ast.Call(args=args) as call) if (
                resolve_callee(call, source.names) == "print"
            ):
                left = _remove_facts(args, facts)
                if left is not None:
                    new = ast.Call(func=call.func, args=left, keywords=call.keywords)
                    # `pass`, since the print may be the only statement of its block.
                    changes[node] = ast.unparse(new) if left else "pass"
            # A prompt shows its value; `jax.print_environment_info()` prints directly.
            case ast.Expr(value=value) if facts.is_fact(value):
                changes[node] = "pass"
            case _:
                pass
    return source.replace(changes)


def _remove_facts(values: Iterable[ast.expr], facts: _EnvironmentFacts) -> list[ast.expr] | None:
    """Return the arguments of a print without facts and labels; None if it prints no fact."""
    left: list[ast.expr] = []
    has_fact = False
    for value in values:
        parts = [value]
        if isinstance(value, ast.JoinedStr):
            formatted = [
                part.value for part in value.values if isinstance(part, ast.FormattedValue)
            ]
            parts = formatted if any(map(facts.is_fact, formatted)) else parts
        kept = [part for part in parts if not facts.is_fact(part)]
        has_fact |= len(kept) < len(parts)
        left += kept
    # Constants are labels: without the facts some would describe nothing.
    return [value for value in left if not isinstance(value, ast.Constant)] if has_fact else None


class _EnvironmentFacts:
    """Recognizes expressions that are facts of the environment.

    Args:
        source: The script.
    """

    def __init__(self, source: ScriptSource) -> None:
        self._names = source.names
        self._variables: set[str] = set()
        values: dict[str, list[ast.expr]] = {}
        bindings: Counter[str] = Counter()
        for node in ast.walk(source.tree):
            match node:
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    values.setdefault(name, []).append(value)
                # Scopes are not distinguished: a parameter of the same name may hold anything, so
                # that the variable is no fact.
                case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                    bindings[name] += 1
                case _:
                    pass
        # A variable that is only ever assigned facts is a fact. That may make facts of the
        # variables assigned from it, so repeat until there are no more.
        assigned = {name: found for name, found in values.items() if len(found) == bindings[name]}
        while more := {
            name
            for name, found in assigned.items()
            if name not in self._variables and all(map(self.is_fact, found))
        }:
            self._variables |= more

    def is_fact(self, node: ast.expr) -> bool:
        """Return whether an expression consists of facts of the environment and constants."""
        return self._classify(node) is True

    def _classify(self, node: ast.expr) -> bool | None:
        """Return whether an expression is a fact, None for a constant."""
        path = resolve_path(node.func if isinstance(node, ast.Call) else node, self._names)
        if path.endswith(_ATTRIBUTES) or path in _PATHS or path.startswith(_MODULES):
            return True
        if isinstance(node, ast.Call) and path in _CALLS:
            return True
        if isinstance(node, ast.Name):
            return node.id in self._variables
        parts = _parts(node)
        if parts is None:
            return False
        classes = {self._classify(part) for part in parts} - {None}
        return classes == {True} if classes else None


def _parts(node: ast.expr) -> list[ast.expr] | None:
    """Return the expressions that an expression only combines; None if it does anything else."""
    parts: list[ast.expr] | None = None
    match node:
        case ast.Constant():
            parts = []
        case ast.Call(func=ast.Name(id=name), args=args) if name in _CONVERSIONS:
            parts = args
        # A method of a fact gives a fact: `jax.__version__.split(".")`.
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


def add_seeds(source: ScriptSource) -> ScriptSource:
    """Return a script that seeds NumPy and Python with 0, unless it seeds them itself.

    Args:
        source: The script.
    """
    unseeded = [
        source.find_span(node)[1] - len(")")
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Call) and not (node.args or node.keywords)
        if resolve_callee(node, source.names) in _GENERATORS
    ]
    source = source.edit((end, end, "0") for end in unseeded)
    for module in _RANDOM_MODULES:
        # Collected for each module: inserting the seed of the first one made a new tree.
        callees = {
            statement: [resolve_callee(node, source.names) for node in ast.walk(statement)]
            for statement in source.tree.body
        }
        if any(f"{module}.seed" in paths for paths in callees.values()):
            continue
        # Before a function that draws, not in it: each of its calls would draw the same numbers.
        first = next((node for node, paths in callees.items() if _draws(paths, module)), None)
        if first is not None:
            source = source.insert(first, f"import {module}\n{module}.seed(0)")
    return source


def _draws(paths: list[str], module: str) -> bool:
    """Return whether one of some functions draws from the shared generator of a module."""
    parts = (path.rpartition(".") for path in paths)
    return any(parent == module and name not in _NOT_DRAWING for parent, _, name in parts)
