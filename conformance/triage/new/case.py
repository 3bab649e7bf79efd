"""A script as a case: the text of a function, and the imports it needs. Pure."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from conformance.triage.new.bridges import bridge, place_on_cell
from conformance.triage.new.edits import Edits, indented
from conformance.triage.new.imports import divided
from conformance.triage.new.program import program_edits
from conformance.triage.new.shown import Show, as_array, show_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from conformance.triage.new.edits import Placed
    from conformance.triage.new.script import Script
    from conformance.triage.new.shown import Shown

RAN: Final = "ran"
"""What a case observes of a script that shows nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """A way to make a case of a script.

    Attributes:
        kind: `program` or `probe`.
        bridged: Whether spellings that not every release has become those of `env.compat`.
        truth: Whether assertions are observed as true or false.
        bare: Whether nothing is observed but that it ran.
        told: Numbers of the values that are observed as text: they are no arrays.
        named: Numbers of the values of which only the type is observed.
    """

    kind: str = "probe"
    bridged: bool = False
    truth: bool = False
    bare: bool = False
    told: frozenset[int] = frozenset()
    named: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """The inside of a case.

    Attributes:
        way: How it was made.
        body: Its statements, but for the imports.
        states: Whether the script says itself what is right.
        compat: The names of `env.compat` that it uses.
        outer: Imports for the top of the file: line by name.
        inner: Imports that not every release has, which stand in the function.
        tolerances: How far the reference may be missed, where the script says so.
        paths: Where each value stands in what is observed, by its number.
        unseen: Prints within functions that jax may trace: they are left, and not observed.
    """

    way: Way
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
        return ("Program" if self.way.kind == "program" else "Observed", self.way.kind)


def draft(script: Script, way: Way, reference: str = "", note: str = "") -> Draft | None:
    """Return the inside of a case.

    Args:
        script: The script.
        way: How it is to be made.
        reference: What the value should be, as an expression; empty for what the script states,
            or nothing.
        note: A comment on that.

    Returns:
        The draft; None where it cannot be made that way.
    """
    edits = Edits(script.text)
    show = Show(shown=()) if way.bare else show_of(script, truth=way.truth)
    place_on_cell(script.tree, script.names, edits)
    compat = bridge(script.tree, script.names, edits) if way.bridged else ()
    if way.bridged and not compat:
        return None
    ending = _Ending(reference, f"# {note}\n" if note else "")
    if way.kind == "program":
        if not program_edits(script, show, edits, reference=reference, note=ending.note):
            return None
        tail = head = ""
        paths: tuple[str, ...] = ()
    else:
        head, tail = _Observing(script, show, edits, way, ending).edit()
        paths = paths_of(script, show)
    _drop(script, show, edits)
    _unglobal(script.tree, edits)
    body = "\n".join(filter(None, (head, edits.applied().strip("\n"), tail)))
    outer, inner = divided(script, body, bridged=bool(compat))
    if "np." in reference and "np" not in script.names:
        outer["np"] = "import numpy as np"
    return Draft(
        way=way, body=body, states=show.states, compat=compat, outer=outer, inner=inner,
        tolerances=show.tolerances, paths=paths, unseen=_unseen(body, script),
    )  # fmt: skip


def paths_of(script: Script, show: Show) -> tuple[str, ...]:
    """Return where each value that is shown stands in what is observed.

    Args:
        script: The script.
        show: What it shows.
    """
    shown = show.shown
    lone = len(shown) == 1 and shown[0].statement is script.tree.body[-1]
    return tuple(
        ("out" if lone else f"out[{number}]") + (f"[{place}]" if len(one.values) > 1 else "")
        for number, one in enumerate(shown)
        for place in range(len(one.values))
    )


@dataclass(frozen=True, slots=True)
class _Ending:
    """What stands at the end of a probe: the reference, and a comment on it."""

    reference: str
    note: str

    @property
    def given(self) -> str:
        return f", reference={self.reference}" if self.reference else ""


class _Observing:
    """Makes statements that show something into observations."""

    def __init__(self, script: Script, show: Show, edits: Edits, way: Way, ending: _Ending) -> None:
        self._script, self._show, self._edits, self._way = script, show, edits, way
        self._ending = ending
        self._count = 0
        self._handled = {
            node.name
            for node in ast.walk(script.tree)
            if isinstance(node, ast.ExceptHandler) and node.name
        }

    def edit(self) -> tuple[str, str]:
        """Edit the statements; return what stands before them all, and behind."""
        shown, body = self._show.shown, self._script.tree.body
        if not shown:
            said = f'return Observed("{RAN}", reference="{RAN}")'
            return "", said
        if len(shown) == 1 and shown[0].statement is body[-1]:
            self._returned(shown[0])
            return "", ""
        seen, wanted = self._free("seen"), self._free("expected")
        states = any(one.wanted is not None for one in shown)
        for one in shown:
            self._appended(one, seen, wanted)
        head = f"{seen} = []" + (f"\n{wanted} = []" if states else "")
        given = f", reference={wanted}" if states else self._ending.given
        return head, f"{self._ending.note}return Observed({seen}{given})"

    def _free(self, name: str) -> str:
        return f"{name}_" if name in {*self._script.bound, *self._script.names} else name

    def _returned(self, one: Shown) -> None:
        """Make a last statement the result of the case."""
        indent = " " * one.statement.col_offset
        note = self._ending.note + indent if self._ending.note else ""
        single = len(one.values) == 1
        before = "return Observed(" if single else "return Observed(("
        parts = self._parts(one, before, "reference=", ", ")
        parts[0] = (note + parts[0][0], parts[0][1])
        end = "" if single else ")"
        if isinstance(one.wanted, ast.expr):
            end += ")"
        else:
            plain = f", reference={one.wanted!r}" if one.wanted is not None else ""
            end += (plain or self._ending.given) + ")"
        self._gaps(one.statement, parts, end)

    def _appended(self, one: Shown, seen: str, wanted: str) -> None:
        indent = " " * one.statement.col_offset
        single = len(one.values) == 1
        before = f"{seen}.append(" if single else f"{seen}.append(("
        between = f")\n{indent}"
        parts = self._parts(one, before, f"{wanted}.append(", between)
        end = ")" if single else "))"
        if one.wanted is not None and not isinstance(one.wanted, ast.expr):
            end += f"\n{indent}{wanted}.append({one.wanted!r})"
        self._gaps(one.statement, parts, end)

    def _parts(
        self, one: Shown, before: str, wanted: str, between: str
    ) -> list[tuple[str, ast.expr]]:
        """Return what is kept of a statement, each with what stands before it."""
        parts: list[tuple[str, ast.expr]] = []
        both = isinstance(one.wanted, ast.expr)
        for number, node in enumerate(one.in_order):
            if node is one.wanted:
                lead = wanted
            else:
                swapped = both and number > 0 and between == ", "
                lead = ("value=" if swapped else before) if number == 0 or both else ""
                self._wrap(node, told=one.told)
            if number:
                lead = (between if both else ", ") + lead
            elif node is one.wanted and between == ", ":
                lead = f"{before}{lead}"
            if both and (made := as_array(node, one, self._script.names)):
                self._edits.wrap(node, f"{made}(", ")")
            parts.append((lead, node))
        return parts

    def _wrap(self, node: ast.expr, *, told: bool) -> None:
        """Make a value one that can be observed."""
        number = self._count
        self._count += 1
        name = node.id if isinstance(node, ast.Name) else ""
        is_dtype = isinstance(node, ast.Attribute) and node.attr in {"dtype", "sharding", "aval"}
        if told:
            self._edits.wrap(node, "bool(", ")")
        elif number in self._way.named:
            self._edits.wrap(node, "type(", ").__name__")
        elif number in self._way.told or name in self._handled or is_dtype:
            self._edits.wrap(node, "str(", ")")
        elif isinstance(node, ast.Starred):
            self._edits.wrap(node, "(", ",)")

    def _gaps(self, statement: Placed, parts: list[tuple[str, ast.expr]], end: str) -> None:
        """Replace all of a statement but some nodes."""
        at = self._edits.start(statement)
        for text, node in parts:
            self._edits.replace(at, self._edits.start(node), text)
            at = self._edits.end(node)
        self._edits.replace(at, self._edits.end(statement), end)


def _drop(script: Script, show: Show, edits: Edits) -> None:
    """Take out what the decorator says, what the file imports, and what shows nothing any more."""
    tree = script.tree
    for node in (*script.settings.statements, *_top_imports(tree)):
        edits.drop(node)
    if ast.get_docstring(tree) is not None:
        edits.drop(tree.body[0])
    for node in show.silent:
        edits.replace(edits.start(node), edits.end(node), "pass" if node.col_offset else "")


def _top_imports(tree: ast.Module) -> list[ast.stmt]:
    return [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]


def _unglobal(tree: ast.Module, edits: Edits) -> None:
    """Names of the script become those of a function: `global` is `nonlocal` there."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Global):
            start = edits.start(node)
            edits.replace(start, start + len("global"), "nonlocal")


def _unseen(body: str, script: Script) -> int:
    tree = ast.parse(indented(body).join(("def case(env):\n", "\n")))
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    return sum(
        (
            isinstance(node.func, ast.Name)
            and node.func.id == "print"
            and "print" not in script.bound
        )
        for node in calls
    )
