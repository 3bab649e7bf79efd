"""Writes the functions of a jaxpr: its equations as statements, its inner jaxprs as functions.

A `Rule` writes one primitive. It returns an expression for the results, or existing values. An
expression may start with a name for the results: `part = lax.slice(...)`; by default it is the
name of the primitive.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from conformance.triage.jaxpr_code.dataflow import Dataflow
from conformance.triage.jaxpr_code.literals import (
    render_dtype,
    render_items,
    render_number,
    render_plain,
)
from conformance.triage.jaxpr_code.program import CodeValue, UnsupportedJaxprError, make_number

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from conformance.ir.jaxpr.document import Aval, Eqn, Jaxpr
    from conformance.triage.jaxpr_code.program import WrittenProgram

    Rule = Callable[["Equation"], "str | Assignment | list[CodeValue]"]

INDENT: Final = "    "
COMPUTE_TYPE: Final = "ctx compute_type"
"""Parameter for the device on which an equation is computed."""
DERIVED: Final = frozenset({
    "accuracy_mode", "axis_size", "branches_platforms", "computation", "consts", "ctx effects",
    "debug_info", "differentiated", "ft_out", "inline", "input_dtype", "linear", "out_sharding",
    "rewrite", "sharding", "srcs", "update_consts", "update_jaxpr", "weak_type",
})  # fmt: skip
"""Parameters that follow from the rest of the program, or are annotations of jax."""
_NAMED: Final = re.compile(r"(\w+) = (.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Assignment:
    """A statement whose target is not just the names of the results.

    Attributes:
        target: The target of the assignment.
        expression: The assigned expression.
        names: Names of the results.
    """

    target: str
    expression: str
    names: list[str]


@dataclass(eq=False)
class FunctionBody:
    """A function being written.

    Attributes:
        program: The program.
        depth: Indentation of its statements.
        context: The `with` in which it is traced.
        lines: Its lines so far.
    """

    program: WrittenProgram
    depth: int = 0
    context: str = ""
    lines: list[str] = field(default_factory=list)
    _opened: str = ""

    def add(self, line: str, context: str = "") -> None:
        """Add a statement, in its `with` unless the function is in the same one."""
        inner = "" if context == self.context else context
        # Consecutive statements share a `with`.
        if inner and inner != self._opened:
            self.lines.append(f"{INDENT * self.depth}with {inner}:")
        self._opened = inner
        self.lines.append(f"{INDENT * (self.depth + bool(inner))}{line}")

    def write_function(
        self,
        name: str,
        signature: Sequence[str],
        write: Callable[[FunctionBody], str],
        context: str,
    ) -> str:
        """Write a function within this one.

        Args:
            name: Its name.
            signature: Names of its parameters.
            write: Writes its statements and returns the text of its result.
            context: The `with` in which it is traced.

        Returns:
            Its name.
        """
        inner = FunctionBody(self.program, self.depth + 1, context)
        returned = write(inner)
        inner.add(f"return {returned}", context)
        self._opened = ""
        self.lines.append(f"{INDENT * self.depth}def {name}({', '.join(signature)}):")
        self.lines += inner.lines
        return name

    def write_equations(self, jaxpr: Jaxpr, arguments: Sequence[CodeValue]) -> list[CodeValue]:
        """Write the equations of a jaxpr as statements, except those whose results are not read.

        Args:
            jaxpr: The jaxpr.
            arguments: The values of its inputs.

        Returns:
            Its results.
        """
        avals = self.program.document.avals
        flow = Dataflow(jaxpr, avals)
        values = [*(self._write_constant(c.value, avals[c.aval]) for c in jaxpr.consts), *arguments]
        for eqn, results in zip(jaxpr.eqns, flow.results, strict=True):
            if flow.is_needed(eqn, results):
                used = [number in flow.read for number in results]
                values += Equation(self, eqn, flow, values, used).write()
            else:
                # A placeholder: variables are numbered by position.
                values += [CodeValue(text="None", aval=avals[number]) for number in eqn.outputs]
        return [self.program.render_atom(atom, values) for atom in jaxpr.out]

    def _write_constant(self, data: Any, aval: Aval) -> CodeValue:
        items = data if aval.shape and isinstance(data, list) else [data]
        kind, listed = render_dtype(aval.dtype), [render_number(item, aval.dtype) for item in items]
        if kind is None or None in listed:
            why = f"of {aval.dtype}{aval.shape} is too large, or not recorded"
            raise UnsupportedJaxprError("constant", why)
        if not aval.shape:
            return make_number(str(listed[0]), aval)
        name = self.program.names.reserve("constant")
        shape = "" if len(aval.shape) == 1 else f".reshape{render_plain(aval.shape)}"
        # By NumPy: `jnp.array` would be an equation itself.
        self.add(f"{name} = np.array([{', '.join(map(str, listed))}], {kind}){shape}")
        return CodeValue(text=name, aval=aval, is_traced=False)


@dataclass(eq=False)
class Equation:
    """One equation, as rules see it.

    Attributes:
        body: The function that it is written in.
        eqn: The equation of the document.
        flow: The dataflow of its jaxpr.
        values: The code of the variables before it.
        used: For each result whether it is read.
    """

    body: FunctionBody
    eqn: Eqn
    flow: Dataflow
    values: Sequence[CodeValue]
    used: list[bool]
    _taken: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.program: WrittenProgram = self.body.program
        self.primitive: str = self.eqn.primitive
        values = [self.program.render_atom(atom, self.values) for atom in self.eqn.inputs]
        self.inputs: list[CodeValue] = values
        self.outputs: list[Aval] = [self.program.document.avals[n] for n in self.eqn.outputs]

    @property
    def texts(self) -> list[str]:
        """Texts of its inputs."""
        return [value.text for value in self.inputs]

    def take(self, name: str, default: Any = None) -> Any:
        """Return a parameter. Parameters that no rule takes must have their default value."""
        self._taken.add(name)
        return self.eqn.params.get(name, default)

    def make_error(self, parameter: str = "", why: str = "") -> UnsupportedJaxprError:
        """Return the error for an equation that has no code.

        Args:
            parameter: The parameter that is not supported; empty for the primitive itself.
            why: The reason in a few words; by default that the value is not supported.
        """
        subject = f"{self.primitive}, parameter {parameter}" if parameter else self.primitive
        return UnsupportedJaxprError(
            subject, why or f"unsupported value {render_plain(self.eqn.params.get(parameter))}"
        )

    def get_jaxpr_number(self, *names: str) -> int:
        """Return the number of an inner jaxpr, by the names of its parameter in all releases."""
        for name in names:
            match self.take(name):
                case {"jaxpr": int(number)}:
                    return number
                case _:
                    pass
        raise self.make_error(names[0], "expected a jaxpr")

    def get_jaxpr(self, *names: str) -> Jaxpr:
        """Return an inner jaxpr, by the names of its parameter in all releases."""
        return self.program.document.jaxprs[self.get_jaxpr_number(*names)]

    def render_context(self) -> str:
        """Return the `with` in which the equation is traced, empty for none."""
        parts = []
        if (kind := self.take(COMPUTE_TYPE)) is not None:
            parts.append(f"compute_on({render_plain(kind)})")
        if metadata := self.take("ctx xla_metadata"):
            pairs = ", ".join(f"{key}={render_plain(value)}" for key, value in metadata)
            parts.append(f"set_xla_metadata({pairs})")
        return ", ".join(parts)

    def make_names(self, base: str) -> list[str]:
        """Return new names for the results, `_` for those that are not read."""
        single, reserve = len(self.used) == 1, self.program.names.reserve
        return [reserve(base) if used or single else "_" for used in self.used]

    def write_function(
        self,
        wanted: str,
        jaxpr: Jaxpr,
        parameters: Sequence[tuple[str, Sequence[str]]],
        *,
        consts: Sequence[CodeValue] = (),
        write: Callable[[FunctionBody, list[CodeValue]], str] | None = None,
        context: str | None = None,
        body: FunctionBody | None = None,
    ) -> str:
        """Write a function that computes a jaxpr, and return its name.

        Args:
            wanted: The wanted name.
            jaxpr: The jaxpr.
            parameters: For each parameter a name, and names for the values that it holds: one
                value is passed directly, several as a tuple.
            consts: Values of the first inputs, which are not parameters.
            write: Writes the statements and returns the text of the result; by default those of
                the jaxpr.
            context: The `with` in which it is traced, by default that of the equation.
            body: The function that contains it, by default that of the equation.
        """
        signature, arguments, unpackings = [], list(consts), []
        for name, hints in parameters:
            avals = jaxpr.inputs[len(arguments) : len(arguments) + len(hints)]
            values = self.program.make_variables(avals, hints)
            alone = len(values) == 1
            signature.append(values[0].text if alone else self.program.names.reserve(name))
            if len(values) > 1:
                targets = ", ".join(value.text for value in values)
                unpackings.append(f"{targets} = {signature[-1]}")
            arguments += values

        def statements(inner: FunctionBody) -> str:
            for line in unpackings:
                inner.add(line)
            if write is not None:
                return write(inner, arguments)
            return render_items([value.text for value in inner.write_equations(jaxpr, arguments)])

        return (body or self.body).write_function(
            self.program.names.reserve(wanted), signature, statements,
            self.render_context() if context is None else context,
        )  # fmt: skip

    def write(self) -> list[CodeValue]:
        """Write the statement.

        Returns:
            The results.

        Raises:
            UnsupportedJaxprError: If it has no code.
        """
        rule = self.program.rules.get(self.primitive)
        if rule is None:
            raise self.make_error("", "no public function is known for it")
        context = self.render_context()
        written: str | Assignment | list[CodeValue] = rule(self)
        for name, value in self.eqn.params.items():
            # A parameter that no rule knows may change the result: refused, not ignored.
            if name not in self._taken | DERIVED and not is_default(value):
                raise self.make_error(name)
        if isinstance(written, list):
            return written
        if isinstance(written, str):
            named = _NAMED.fullmatch(written)
            base, expression = named.groups() if named else (self.primitive, written)
            names = self.make_names(base)
            # An equation with an effect may have no results.
            written = Assignment(", ".join(names) or "_", expression, names)
        self.body.add(f"{written.target} = {written.expression}", context)
        made = zip(written.names, self.outputs, strict=True)
        return [CodeValue(text=name, aval=aval) for name, aval in made]


def is_default(value: Any) -> bool:
    """Return whether a value of a parameter means the same as its absence."""
    if isinstance(value, list):
        return all(is_default(part) for part in value)
    return value is None or value is False or value == "unspecified"
