"""The code that a command ran, and what it reached of JAX, as its processes recorded them."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

TRANSFORMS: Final = frozenset({
    "checkpoint", "custom_batching.custom_vmap", "custom_gradient", "custom_jvp", "custom_vjp",
    "experimental.shard_map.shard_map", "grad", "hessian", "jacfwd", "jacobian", "jacrev", "jit",
    "jvp", "linear_transpose", "linearize", "make_jaxpr", "pmap", "remat", "shard_map",
    "value_and_grad", "vjp", "vmap",
})  # fmt: skip
"""Names of `jax` that transform functions."""
_SIMPLE: Final = (
    ast.Expr, ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Return, ast.Raise, ast.Delete,
    ast.Assert, ast.Import, ast.ImportFrom,
)  # fmt: skip
"""Statements without others, which run as a whole."""
_APART: Final = (ast.JoinedStr, ast.Assert)
"""Code that has other positions at run time: f-strings before Python 3.12, and assertions, which
pytest rewrites."""


@dataclass(slots=True)
class ReachedFile:
    """The part of a file outside of JAX that ran.

    Attributes:
        lines: Lines that ran, except as part of a lambda.
        lambdas: Lines that ran as part of a lambda.
        unknown: Lines of which it is not known whether they ran after all.
        calls: Line and column, from 0, where a call that ran begins.
        names: Public names of JAX by the line that called them; several stand for one object.
        accesses: Names by the line that got them from the `__getattr__` of a module.
    """

    lines: set[int] = field(default_factory=set)
    lambdas: set[int] = field(default_factory=set)
    unknown: set[int] = field(default_factory=set)
    calls: set[tuple[int, int]] = field(default_factory=set)
    names: dict[int, set[tuple[str, ...]]] = field(default_factory=dict)
    accesses: dict[int, set[str]] = field(default_factory=dict)


@dataclass(slots=True)
class ReachedCode:
    """Everything that the processes of a command reached.

    Attributes:
        processes: Number of Python processes that imported JAX.
        releases: Releases of JAX that they imported.
        files: What ran of each file, by absolute path.
        calls_known: Whether each of these processes recorded calls, not only lines.
        losses: Why their records are incomplete.
        primitives: Primitives that were bound.
        options: Options of `jax.config` that were set, each with path and line.
        variables: Environment variables that may set options.
    """

    processes: int = 0
    releases: set[str] = field(default_factory=set)
    files: dict[str, ReachedFile] = field(default_factory=dict)
    calls_known: bool = True
    losses: set[str] = field(default_factory=set)
    primitives: set[str] = field(default_factory=set)
    options: set[tuple[str, str, int]] = field(default_factory=set)
    variables: set[str] = field(default_factory=set)

    def add(self, record: bytes) -> None:
        """Add what a process recorded, if it imported JAX.

        Args:
            record: Content of its file, see `conformance.worker.reach_recorder`.
        """
        lines = [*_decode(record)]
        # Nothing shows what a process without JAX would have reached with it.
        if not any(kind == "jax" for kind, *_ in lines):
            return
        self.processes += 1
        names: dict[int, str] = {}
        for kind, *rest in lines:
            match kind, rest:
                case "python", [_, bool(calls)]:
                    self.calls_known &= calls
                case "jax" | "primitive" | "environment" | "lost", [str(text)]:
                    self._get_texts(kind).add(text)
                case "file", [int(number), str(path)]:
                    names[number] = path
                case "option", [str(name), int(number), int(line)]:
                    self.options.add((name, names[number], line))
                case _, [int(number), *more]:
                    _add_place(self.files.setdefault(names[number], ReachedFile()), kind, more)
                case _:
                    continue

    def _get_texts(self, kind: str) -> set[str]:
        """Return the set to which lines of a kind add."""
        sets = {
            "jax": self.releases, "primitive": self.primitives, "environment": self.variables,
            "lost": self.losses,
        }  # fmt: skip
        return sets[kind]


def _decode(record: bytes) -> Iterator[list[Any]]:
    # The file is mapped: behind the last line are zeros.
    for line in record.partition(b"\0")[0].splitlines():
        try:
            yield msgspec.json.decode(line, type=list[Any])
        except msgspec.DecodeError:  # killed while it copied the line
            return


def _add_place(file: ReachedFile, kind: str, place: list[Any]) -> None:
    match kind, place:
        case "line", [int(line)]:
            file.lines.add(line)
        case "lambda", [int(line)]:
            file.lambdas.add(line)
        case "unknown", [list(lines)]:
            file.unknown |= {*lines}
        case "call", [int(line), int(column)]:
            file.calls.add((line, column))
        case "name", [int(line), list(names)]:
            file.names.setdefault(line, set()).add(tuple(names))
        case "access", [int(line), str(name)]:
            file.accesses.setdefault(line, set()).add(name)
        case _:
            pass


class _Place(NamedTuple):
    """The place of an expression.

    Attributes:
        lines: Lines of which one runs if it does.
        in_lambda: Whether they run as part of a lambda.
        is_call: Whether a call begins there.
    """

    lines: range
    in_lambda: bool
    is_call: bool


class _Context(NamedTuple):
    """The code around a node: lines of a simple statement, and how they run."""

    lines: range = range(0)
    is_apart: bool = False
    in_lambda: bool = False

    def enter(self, node: ast.AST) -> _Context:
        is_apart = isinstance(node, _APART)
        if isinstance(node, _SIMPLE):
            return _Context(range(node.lineno, (node.end_lineno or node.lineno) + 1), is_apart)
        if isinstance(node, ast.stmt):
            return _Context()
        in_lambda = self.in_lambda or isinstance(node, ast.Lambda)
        return self._replace(is_apart=self.is_apart or is_apart, in_lambda=in_lambda)


class ReachedUses:
    """Says which uses in a file a command reached.

    Args:
        code: Everything that was reached.
        file: What ran of the file.
        source: Source of the file.
    """

    def __init__(self, code: ReachedCode, file: ReachedFile, source: bytes) -> None:
        self._code = code
        self._file = file
        self._places = _find_places(ast.parse(source))

    @property
    def names(self) -> list[tuple[int, tuple[str, ...]]]:
        """Public names of JAX that were called, each with its line."""
        return [(line, names) for line, some in sorted(self._file.names.items()) for names in some]

    @property
    def accesses(self) -> list[tuple[int, str]]:
        """Public names that came from the `__getattr__` of a module, each with its line."""
        found = sorted(self._file.accesses.items())
        return [(line, name) for line, names in found for name in names if "._" not in name]

    def is_reached(self, line: int, column: int, *, called: bool = False) -> bool | None:
        """Say whether a use was reached, None if that is not known.

        Args:
            line: Its line, from 1.
            column: Its column, from 1.
            called: Whether it counts only if the call that begins there was made, too.
        """
        own = _Place(range(line, line + 1), in_lambda=False, is_call=False)
        place = self._places.get((line, column - 1), own)
        ran = self._file.lambdas if place.in_lambda else self._file.lines
        reached = not ran.isdisjoint(place.lines)
        if reached and called and place.is_call and self._code.calls_known:
            reached = (line, column - 1) in self._file.calls
        is_certain = not self._code.losses and self._file.unknown.isdisjoint(place.lines)
        return reached if reached or is_certain else None


def _find_places(tree: ast.Module) -> dict[tuple[int, int], _Place]:
    """Return the places of names, attributes, constants and imports by line and column."""
    places: dict[tuple[int, int], _Place] = {}
    waiting: list[tuple[ast.AST, _Context]] = [(tree, _Context())]
    while waiting:
        node, context = waiting.pop()
        for child in ast.iter_child_nodes(node):
            inner = context.enter(child)
            waiting.append((child, inner))
            if not isinstance(child, (ast.Name, ast.Attribute, ast.Constant, ast.alias)):
                continue
            # The names of an import have the line of the statement, folded constants that of the
            # whole.
            whole = inner.is_apart or isinstance(child, (ast.alias, ast.Constant))
            key = (child.lineno, child.col_offset)
            lines = inner.lines if whole and inner.lines else range(key[0], key[0] + 1)
            is_call = (
                isinstance(node, ast.Call) and child is node.func
                and child.lineno == child.end_lineno and not inner.is_apart
            )  # fmt: skip
            if key not in places or is_call:
                places[key] = _Place(lines, inner.in_lambda, is_call)
    return places


def list_transforms(names: Iterable[str]) -> list[str]:
    """Return the names that are transforms of functions.

    Args:
        names: Public names of JAX.
    """
    return sorted(name for name in {*names} if name.removeprefix("jax.") in TRANSFORMS)
