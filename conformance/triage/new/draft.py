"""A script as a case: the text of a function, and the imports it needs. Pure."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Any, Final

import libcst as cst

from conformance.triage.new.compat import use_cell_devices, use_compat
from conformance.triage.new.imports import divide_imports
from conformance.triage.new.observables import (
    Observables,
    expected_code,
    find_observables,
    side_code,
)
from conformance.triage.new.program import find_program_changes

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from conformance.triage.new.observables import Observable
    from conformance.triage.new.script import Script
    from conformance.triage.new.source import ScriptSource

RAN: Final = 'return Observed("ran", reference="ran")'
"""The end of a case whose script shows nothing."""
_DESCRIPTIONS: Final = frozenset({"dtype", "sharding", "aval"})
"""Attributes of arrays that are observed as text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftOptions:
    """A way to make a case of a script.

    Attributes:
        kind: `program` or `probe`.
        bridged: Whether spellings that not every release has become those of `env.compat`.
        truth: Whether assertions are observed as true or false.
        bare: Whether nothing is observed except that it ran.
        as_text: Numbers of the values that are observed as text: they are no arrays.
        as_type: Numbers of the values of which only the type is observed.
    """

    kind: str = "probe"
    bridged: bool = False
    truth: bool = False
    bare: bool = False
    as_text: frozenset[int] = frozenset()
    as_type: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """The inside of a case.

    Attributes:
        options: How it was made.
        body: Its statements, except the imports.
        states: Whether the script says itself what is right.
        compat: The names of `env.compat` that it uses.
        outer: Imports for the top of the file: line by name.
        inner: Imports that not every release has, which stand in the function.
        tolerances: How far the reference may be missed, where the script says so.
        paths: The path of each value in what is observed, by its number.
        unseen: Prints within functions that jax may trace: they are left, and not observed.
    """

    options: DraftOptions
    body: str
    states: bool
    compat: tuple[str, ...] = ()
    outer: Mapping[str, str] = field(default_factory=dict)
    inner: tuple[str, ...] = ()
    tolerances: Mapping[str, float] = field(default_factory=dict)
    paths: tuple[str, ...] = ()
    unseen: int = 0

    @property
    def kit(self) -> tuple[str, ...]:
        """The names of the kit that it uses."""
        kind = self.options.kind
        return ("Program" if kind == "program" else "Observed", kind)


def draft(
    script: Script, options: DraftOptions, reference: str = "", note: str = ""
) -> Draft | None:
    """Return the inside of a case.

    Args:
        script: The script.
        options: How it is to be made.
        reference: What the value should be, as an expression; empty for what the script states,
            or nothing.
        note: A comment on that.

    Returns:
        The draft; None where it cannot be made that way.
    """
    source = use_cell_devices(script.source)
    compat: tuple[str, ...] = ()
    if options.bridged:
        source, compat = use_compat(source)
        if not compat:
            return None
    shown = Observables()
    if not options.bare:
        shown = find_observables(source, echoes=script.echoes, truth=options.truth)
    comment = f"# {note}\n" if note else ""
    head = tail = ""
    paths: tuple[str, ...] = ()
    if options.kind == "program":
        found = find_program_changes(source, shown, reference, comment)
        if found is None:
            return None
        changes = found
    else:
        probe = _Probe(script, source, shown, options, reference, comment)
        head, changes, tail = probe.written()
        paths = probe.paths
    changes |= {node: "pass" if node.col_offset else "" for node in shown.silent}
    changes = {source.tree.body[number]: "" for number in script.gone} | changes
    inside = source.replace(changes).transform(_nonlocal).text.strip("\n")
    body = "\n".join(filter(None, (head, inside, tail)))
    outer, inner = divide_imports(script, body, bridged=bool(compat))
    if "np." in reference and "np" not in source.names:
        outer["np"] = "import numpy as np"
    prints = (one for one in ast.walk(ast.parse(body)) if isinstance(one, ast.Call))
    return Draft(
        options=options, body=body, states=shown.states, compat=compat, outer=outer, inner=inner,
        tolerances=shown.tolerances, paths=paths,
        unseen=sum("print" not in script.bound and _is_print(one) for one in prints),
    )  # fmt: skip


def _nonlocal(_: cst.CSTNode, node: cst.CSTNode) -> Any:
    """Names of the script become those of a function: `global` is `nonlocal` there."""
    return cst.Nonlocal(node.names) if isinstance(node, cst.Global) else node


def _is_print(node: ast.Call) -> bool:
    return isinstance(node.func, ast.Name) and node.func.id == "print"


@dataclass(frozen=True, slots=True)
class _Probe:
    """A script whose observables are observed."""

    script: Script
    source: ScriptSource
    shown: Observables
    options: DraftOptions
    reference: str
    comment: str

    @property
    def _is_lone(self) -> bool:
        """Whether all that it shows is at its end: the result of the case."""
        found = self.shown.found
        return len(found) == 1 and found[0].statement is self.source.tree.body[-1]

    @property
    def paths(self) -> tuple[str, ...]:
        """The path of each value in what is observed."""
        return tuple(
            ("out" if self._is_lone else f"out[{number}]")
            + (f"[{place}]" if len(one.values) > 1 else "")
            for number, one in enumerate(self.shown.found)
            for place in range(len(one.values))
        )

    def written(self) -> tuple[str, dict[ast.stmt, str], str]:
        """Return the text before all statements, the new statements, and the text after them."""
        found = self.shown.found
        if not found:
            return "", {}, RAN
        numbers = count()
        sides = [(one, *self._sides(one, numbers)) for one in found]
        given = [f"reference={self.reference}"] if self.reference else []
        if self._is_lone:
            ((one, value, expected),) = sides
            parts = [value, f"reference={expected}"] if expected else [value, *given]
            if one.is_swapped:
                parts = [f"reference={expected}", f"value={value}"]
            end = f"{self.comment}return Observed({', '.join(parts)})"
            return "", {one.statement: end}, ""
        seen, wanted = self._free("seen"), self._free("expected")
        changes: dict[ast.stmt, str] = {}
        for one, value, expected in sides:
            lines = [f"{seen}.append({value})"]
            lines += [f"{wanted}.append({expected})"] if expected else []
            changes[one.statement] = "\n".join(reversed(lines) if one.is_swapped else lines)
        head = f"{seen} = []"
        if any(expected for _, _, expected in sides):
            head, given = f"{head}\n{wanted} = []", [f"reference={wanted}"]
        return head, changes, f"{self.comment}return Observed({', '.join([seen, *given])})"

    def _free(self, name: str) -> str:
        taken = name in self.script.bound or name in self.source.names
        return f"{name}_" if taken else name

    def _sides(self, one: Observable, numbers: Iterator[int]) -> tuple[str, str]:
        """Return the values of an observable, and what they should be; empty for nothing."""
        texts = [self._value(node, one, next(numbers)) for node in one.values]
        value = texts[0] if len(texts) == 1 else f"({', '.join(texts)})"
        return value, expected_code(one, self.source)

    def _value(self, node: ast.expr, one: Observable, number: int) -> str:
        """Return a value as one that can be observed."""
        both = isinstance(one.expected, ast.expr)
        text = side_code(node, one, self.source) if both else self.source.segment(node)
        if one.is_condition:
            return f"bool({text})"
        if number in self.options.as_type:
            return f"type({text}).__name__"
        match node:
            case ast.Name(id=name):
                is_text = name in self._exceptions
            case ast.Attribute(attr=name):
                is_text = name in _DESCRIPTIONS
            case _:
                is_text = False
        if is_text or number in self.options.as_text:
            return f"str({text})"
        return f"({text},)" if isinstance(node, ast.Starred) else text

    @property
    def _exceptions(self) -> set[str]:
        nodes = ast.walk(self.source.tree)
        return {node.name or "" for node in nodes if isinstance(node, ast.ExceptHandler)}
