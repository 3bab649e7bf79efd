"""Drafts of a case: the body of its function, made of a script, with the imports it needs. Pure."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Final

from conformance.triage.new.compat import COMPAT, PARTIAL, SHARD_MAPS, use_cell_devices, use_compat
from conformance.triage.new.imports import divide_imports
from conformance.triage.new.observables import (
    Observable,
    Observables,
    find_observables,
    render_expected,
    render_side,
    strip_conversions,
)
from conformance.triage.new.script_source import resolve_callee, resolve_path

if TYPE_CHECKING:
    from collections.abc import Mapping

    from conformance.triage.new.script import Script
    from conformance.triage.new.script_source import ScriptSource

RAN: Final = 'return Observed("ran", reference="ran")'
"""The end of a case whose script shows nothing."""
_DESCRIPTIONS: Final = frozenset({"dtype", "sharding", "aval"})
"""Attributes of arrays that are observed as text."""
_STAGED: Final = SHARD_MAPS | {"jax.jit", "jax.experimental.pjit.pjit", f"{COMPAT}shard_map"}
_STATIC: Final = ("static_arg", "backend", "device", "donate_arg")
"""Prefixes of keywords with which the harness cannot lower a function and call it later."""
_USES_OF_RESULT: Final = 2
"""A result that is assigned once and used once: its assignment becomes the `return`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftOptions:
    """Options for making a case of a script.

    Attributes:
        kind: `program` or `probe`.
        use_compat: Whether `env.compat` replaces functions that only some releases have.
        as_conditions: Whether assertions are observed as true or false.
        only_runs: Whether nothing is observed except that it runs.
        as_text: Numbers of the values that are observed as text: they are no arrays.
        as_type: Numbers of the values of which only the type is observed.
    """

    kind: str = "probe"
    use_compat: bool = False
    as_conditions: bool = False
    only_runs: bool = False
    as_text: frozenset[int] = frozenset()
    as_type: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """The body of a case.

    Attributes:
        options: The options it was made with.
        body: Its statements, except the imports.
        states_reference: Whether the script itself states the expected values.
        compat_names: The names of `env.compat` that it uses.
        outer: Imports for the top of the file: line by name.
        inner: Imports for the function: not every release has them.
        tolerances: The tolerances that the script states.
        paths: The path of each value in the observed value, by its number.
        unobserved_prints: Number of prints in functions that jax may trace.
    """

    options: DraftOptions
    body: str
    states_reference: bool
    compat_names: tuple[str, ...] = ()
    outer: Mapping[str, str] = field(default_factory=dict)
    inner: tuple[str, ...] = ()
    tolerances: Mapping[str, float] = field(default_factory=dict)
    paths: tuple[str, ...] = ()
    unobserved_prints: int = 0


def make_draft(
    script: Script, options: DraftOptions, reference: str = "", note: str = ""
) -> Draft | None:
    """Return the body of a case.

    Args:
        script: The script.
        options: The options.
        reference: The expected value as an expression; empty for that of the script, or
            none.
        note: A comment on the reference.

    Returns:
        The draft; None where the options do not apply to the script.
    """
    # Devices are replaced with any options: the devices of a cell are those of its plan.
    source = use_cell_devices(script.source)
    compat_names: tuple[str, ...] = ()
    if options.use_compat:
        source, compat_names = use_compat(source)
        if not compat_names:
            return None  # the same as without the option
    shown = Observables()
    if not options.only_runs:
        shown = find_observables(
            source, echoes=script.echoes, as_conditions=options.as_conditions
        )  # fmt: skip
    comment = f"# {note}\n" if note else ""
    head = tail = ""
    paths: tuple[str, ...] = ()
    if options.kind == "program":
        program = _return_program(source, shown, reference, comment)
        if program is None:
            return None
        changes = program
    else:
        probe = _ProbeWriter(script, source, shown, options, reference, comment)
        head, changes, tail = probe.write()
        paths = probe.paths
    # A statement in a block may be its only one.
    changes |= {node: "pass" if node.col_offset else "" for node in shown.silenced}
    changes = {source.tree.body[number]: "" for number in script.removed} | changes
    inside = _rename_globals(source.replace(changes)).text.strip("\n")
    body = "\n".join(filter(None, (head, inside, tail)))
    outer, inner = divide_imports(
        script.source.tree.body, body, bound=script.bound, uses_compat=bool(compat_names)
    )
    # The script need not import NumPy, but its proposed reference uses it.
    if "np." in reference and "np" not in source.names:
        outer["np"] = "import numpy as np"
    # Observed prints are replaced by now: those that are left are in functions that jax may trace.
    callees = [resolve_callee(node, {}) for node in ast.walk(ast.parse(body))]
    return Draft(
        options=options, body=body, states_reference=shown.states_reference,
        compat_names=compat_names, outer=outer, inner=inner, tolerances=shown.tolerances,
        paths=paths, unobserved_prints=0 if "print" in script.bound else callees.count("print"),
    )  # fmt: skip


def _rename_globals(source: ScriptSource) -> ScriptSource:
    """Replace `global` by `nonlocal`: globals of the script become locals of a function."""
    found = (node for node in ast.walk(source.tree) if isinstance(node, ast.Global))
    starts = (source.find_span(node)[0] for node in found)
    return source.edit((start, start + len("global"), "nonlocal") for start in starts)


@dataclass(frozen=True, slots=True)
class _ProbeWriter:
    """Writes a script as a probe that observes its observables."""

    script: Script
    source: ScriptSource
    shown: Observables
    options: DraftOptions
    reference: str
    comment: str

    @property
    def _ends_in_only_observable(self) -> bool:
        found = self.shown.found
        # A statement within a loop or a function may run repeatedly, and cannot return the case.
        return len(found) == 1 and found[0].statement is self.source.tree.body[-1]

    @property
    def paths(self) -> tuple[str, ...]:
        """The path of each value in the observed value."""
        return tuple(
            ("out" if self._ends_in_only_observable else f"out[{number}]")
            + (f"[{place}]" if len(observable.values) > 1 else "")
            for number, observable in enumerate(self.shown.found)
            for place in range(len(observable.values))
        )

    def write(self) -> tuple[str, dict[ast.stmt, str], str]:
        """Return the text above all statements, the new statements, and the text below them."""
        if not self.shown.found:
            return "", {}, RAN
        # One numbering over all observables, in the order of `paths`: options refer to values by
        # it.
        numbers = count()
        sides = []
        for observable in self.shown.found:
            texts = [
                self._render_value(node, observable, next(numbers)) for node in observable.values
            ]
            value = texts[0] if len(texts) == 1 else f"({', '.join(texts)})"
            sides.append((observable, value, render_expected(observable, self.source)))
        given = [f"reference={self.reference}"] if self.reference else []
        if self._ends_in_only_observable:
            ((observable, value, expected),) = sides
            arguments = [value, f"reference={expected}"] if expected else [value, *given]
            if observable.is_swapped:  # keep the order in which the script computes both sides
                arguments = [f"reference={expected}", f"value={value}"]
            end = f"{self.comment}return Observed({', '.join(arguments)})"
            return "", {observable.statement: end}, ""
        seen, wanted = self._unused_name("seen"), self._unused_name("expected")
        changes: dict[ast.stmt, str] = {}
        for observable, value, expected in sides:
            lines = [f"{seen}.append({value})"]
            lines += [f"{wanted}.append({expected})"] if expected else []
            ordered = reversed(lines) if observable.is_swapped else lines
            changes[observable.statement] = "\n".join(ordered)
        head = f"{seen} = []"
        if any(expected for _, _, expected in sides):
            head, given = f"{head}\n{wanted} = []", [f"reference={wanted}"]
        return head, changes, f"{self.comment}return Observed({', '.join([seen, *given])})"

    def _unused_name(self, name: str) -> str:
        is_taken = name in self.script.bound or name in self.source.names
        return f"{name}_" if is_taken else name

    def _render_value(self, node: ast.expr, observable: Observable, number: int) -> str:
        """Return the text of a value in a form that can be observed."""
        has_sides = isinstance(observable.expected, ast.expr)
        text = (render_side(node, observable, self.source) if has_sides
                else self.source.segment(node))  # fmt: skip
        # A condition on arrays is an array; its reference is a Python bool.
        if observable.is_condition:
            return f"bool({text})"
        if number in self.options.as_type:
            return f"type({text}).__name__"
        match node:
            case ast.Name(id=name):
                handlers = ast.walk(self.source.tree)
                is_text = any(isinstance(h, ast.ExceptHandler) and h.name == name for h in handlers)
            case ast.Attribute(attr=name):
                is_text = name in _DESCRIPTIONS
            case _:
                is_text = False
        # An exception and a dtype are no arrays: the harness can only observe their text.
        if is_text or number in self.options.as_text:
            return f"str({text})"
        # `print(*x)` shows the items of `x`.
        return f"({text},)" if isinstance(node, ast.Starred) else text


def _return_program(
    source: ScriptSource, shown: Observables, reference: str, comment: str
) -> dict[ast.stmt, str] | None:
    """Return the changes by which a script returns a program, if it ends in a staged call.

    Args:
        source: The script.
        shown: The values that it shows.
        reference: The expected value as an expression.
        comment: A comment on the reference, with its line end.

    Returns:
        The new statements by those that they replace. None unless the script certainly is a
        program: it shows one result, of arrays, of one call.
    """
    body = source.tree.body
    match shown.found:
        case [Observable(values=[value], is_condition=False) as observable] if (
            observable.statement is body[-1]
        ):
            changes: dict[ast.stmt, str] = {}
        case _:
            return None
    statement, value = observable.statement, strip_conversions(value, source.names)
    match value, body:
        case ast.Name(id=used), [
            *_, ast.Assign(targets=[ast.Name(id=name)], value=assigned) as before, _,
        ] if used == name and _count_uses(source.tree, name) == _USES_OF_RESULT:  # fmt: skip
            changes[statement] = ""
            statement, value = before, assigned
        case _:
            pass
    match value:
        case ast.Call(func=function, args=args, keywords=keywords) if _is_staged(function, source):
            is_starred = any(isinstance(node, ast.Starred) for node in args)
            # `Program` takes a tuple and a dict, whose contents are unknown.
            if is_starred or any(keyword.arg is None for keyword in keywords):
                return None
        case _:
            return None
    arguments = [source.segment(function)]
    if args:
        listed = ", ".join(map(source.segment, args))
        arguments.append(f"args=({listed}{',' if len(args) == 1 else ''})")
    if keywords:
        pairs = (f'"{keyword.arg}": {source.segment(keyword.value)}' for keyword in keywords)
        arguments.append(f"kwargs={{{', '.join(pairs)}}}")
    if expected := render_expected(observable, source) or reference:
        arguments.append(f"reference={expected}")
    return {**changes, statement: f"{comment}return Program({', '.join(arguments)})"}


def _count_uses(tree: ast.AST, name: str) -> int:
    return sum(isinstance(node, ast.Name) and node.id == name for node in ast.walk(tree))


def _is_staged(function: ast.expr, source: ScriptSource) -> bool:
    """Return whether a function is certainly a staged one: `jax.jit(f)`, or a name bound to it."""
    names = source.names
    if isinstance(function, ast.Call):
        return _makes_staged(function, names)
    if not isinstance(function, ast.Name):
        return False
    match [node for node in ast.walk(source.tree) if _binds(node, function.id)]:
        case [ast.FunctionDef(decorator_list=[decorator]) as binding]:
            is_staged = _stages_decorated(decorator, names)
        case [ast.Assign(targets=[ast.Name()], value=ast.Call() as value) as binding]:
            is_staged = _makes_staged(value, names)
        case _:
            return False
    # A name that is bound in a block or a function may mean something else at the call.
    return is_staged and binding in source.tree.body


def _binds(node: ast.AST, name: str) -> bool:
    match node:
        case ast.FunctionDef(name=bound) | ast.ClassDef(name=bound):
            return bound == name
        case ast.Assign(targets=targets):
            return any(isinstance(target, ast.Name) and target.id == name for target in targets)
        case _:
            return False


def _makes_staged(node: ast.Call, names: Mapping[str, str]) -> bool:
    """Return whether a call makes a staged function: `jax.jit(f)`."""
    return resolve_callee(node, names) in _STAGED and bool(node.args) and _has_no_static(node)


def _has_no_static(node: ast.Call) -> bool:
    # `**options` may contain any option, so it counts as a static argument.
    return not any((keyword.arg or "static_arg").startswith(_STATIC) for keyword in node.keywords)


def _stages_decorated(node: ast.expr, names: Mapping[str, str]) -> bool:
    """Return whether a decorator makes a staged function."""
    match node:
        case ast.Call(args=[function, *_]) if resolve_callee(node, names) == PARTIAL:
            return resolve_path(function, names) in _STAGED and _has_no_static(node)
        case ast.Call(args=[]):
            return resolve_callee(node, names) in _STAGED and _has_no_static(node)
        case _:
            return resolve_path(node, names) in _STAGED
