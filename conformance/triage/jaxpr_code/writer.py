"""Writes the functions of a jaxpr: its equations as statements, its inner jaxprs as functions.

How one primitive is said is a `Rule`: it is handed an `Equation` and returns the expression of
its results, or the values that these are already, where it says nothing or has said all itself.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from conformance.triage.jaxpr_code.program import (
    Assigned,
    Program,
    Unsaid,
    UnsayableError,
    Value,
    numeral,
)
from conformance.triage.jaxpr_code.text import BASES, dtype, number, one_or_tuple, plain
from conformance.triage.jaxpr_code.uses import atoms_of, dead, makers_of, selectors, uses_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from conformance.ir.jaxpr.document import Aval, Eqn, Jaxpr

    Rule = Callable[["Equation"], "str | Assigned | list[Value]"]

INDENT: Final = "    "
COMPUTE_TYPE: Final = "ctx compute_type"
"""Parameter that says where an equation is computed."""
HARMLESS: Final = frozenset(
    {
        *("ctx effects", "sharding", "out_sharding", "linear", "weak_type", "debug_info"),
        *("axis_size", "rewrite", "ft_out"),
    }
)
"""Parameters that follow from the rest of the program, or are jax's own notes."""


@dataclass(eq=False)
class Body:
    """A function being written.

    Attributes:
        program: What it is part of.
        rules: How each primitive is said.
        depth: How far its statements are indented.
        context: The `with` under which it is traced.
        own: Whether it is within the program's own function, and reads what that is given.
        lines: What is written of it.
    """

    program: Program
    rules: Mapping[str, Rule]
    depth: int = 0
    context: str = ""
    own: bool = False
    lines: list[str] = field(default_factory=list)
    _opened: str = ""

    def say(self, line: str, context: str = "") -> None:
        """Add a statement, under its `with` unless that holds already."""
        inner = "" if context == self.context else context
        if inner and inner != self._opened:
            self.lines.append(f"{INDENT * self.depth}with {inner}:")
        self._opened = inner
        self.lines.append(f"{INDENT * (self.depth + bool(inner))}{line}")

    def function(
        self, name: str, signature: Sequence[str], write: Callable[[Body], str], *, context: str
    ) -> str:
        """Write a function in this one.

        Args:
            name: Its name.
            signature: Names of its parameters.
            write: Writes its statements and returns the text of what it returns.
            context: The `with` under which it is traced.

        Returns:
            Its name.
        """
        inner = Body(self.program, self.rules, self.depth + 1, context, self.own)
        returned = write(inner)
        inner.say(f"return {returned}", context)
        self._opened = ""
        self.lines.append(f"{INDENT * self.depth}def {name}({', '.join(signature)}):")
        self.lines += inner.lines
        return name

    def result(self, jaxpr: Jaxpr, given: Sequence[Value]) -> str:
        """Write the equations of a jaxpr, and return the text of its results: one stands alone."""
        return one_or_tuple([value.text for value in self.eqns(jaxpr, given)])

    def eqns(self, jaxpr: Jaxpr, given: Sequence[Value]) -> list[Value]:
        """Write the equations of a jaxpr as statements.

        Args:
            jaxpr: The jaxpr.
            given: What stands for its inputs.

        Returns:
            Its results.
        """
        program, values = self.program, [*self._constants(jaxpr), *given]
        uses, makers = uses_of(jaxpr), makers_of(jaxpr)
        skipped = selectors(jaxpr, program.document.avals) | (
            set() if program.dead else dead(jaxpr)
        )
        written: list[Equation] = []
        for position, eqn in enumerate(jaxpr.eqns):
            count = len(values)
            made = Equation(
                self,
                eqn,
                [program.atom(atom, values) for atom in eqn.inputs],
                [uses[count + number] > 0 for number in range(len(eqn.outputs))],
                [written[makers[a]] if a in makers else None for a in atoms_of(eqn)],
            )
            written.append(made)
            values += made.unnamed() if position in skipped else made.write()
        return [program.atom(atom, values) for atom in jaxpr.out]

    def _constants(self, jaxpr: Jaxpr) -> list[Value]:
        return [
            self._constant(one.value, self.program.document.avals[one.aval]) for one in jaxpr.consts
        ]

    def _constant(self, data: Any, aval: Aval) -> Value:
        items = data if aval.shape and isinstance(data, list) else [data]
        said = [number(item, aval.dtype) for item in items]
        kind = dtype(aval.dtype)
        if (kind is None or None in said) and self.own:
            name = self.program.names.fresh("constant")
            self.program.held.append(Value(text=name, aval=aval))
            return self.program.held[-1]
        if kind is None or None in said:
            why = f"of {aval.dtype}{aval.shape} is too large, or out of reach"
            self.program.unsaid.add(Unsaid("constant", "", why))
            return Value(text="None", aval=aval, traced=False)
        if not aval.shape:
            return numeral(str(said[0]), aval)
        name = self.program.names.fresh("constant")
        shape = "" if len(aval.shape) == 1 else f".reshape{plain(aval.shape)}"
        listed = ", ".join(map(str, said))
        self.say(f"{name} = np.array([{listed}], {kind}){shape}")
        return Value(text=name, aval=aval, traced=False)


@dataclass(eq=False)
class Equation:
    """One equation, as rules see it.

    Attributes:
        body: Where it is written.
        eqn: As it stands in the document.
        inputs: What it is given.
        used: Which results something reads.
        makers: The equations that made its inputs, None for what no equation made.
    """

    body: Body
    eqn: Eqn
    inputs: list[Value]
    used: list[bool]
    makers: list[Equation | None]
    _taken: set[str] = field(default_factory=set)

    @property
    def program(self) -> Program:
        """What it is part of."""
        return self.body.program

    @property
    def primitive(self) -> str:
        """Name of its primitive."""
        return self.eqn.primitive

    @property
    def texts(self) -> list[str]:
        """Texts of its inputs."""
        return [value.text for value in self.inputs]

    @property
    def outputs(self) -> list[Aval]:
        """Types of its results."""
        return [self.program.document.avals[number] for number in self.eqn.outputs]

    def take(self, name: str, default: Any = None) -> Any:
        """Return a parameter; those that no rule takes must say nothing."""
        self._taken.add(name)
        return self.eqn.params.get(name, default)

    def jaxpr(self, *names: str) -> Jaxpr:
        """Return the inner jaxpr of a parameter that goes by one of some names."""
        return self.program.document.jaxprs[self.jaxpr_number(*names)]

    def jaxpr_number(self, *names: str) -> int:
        """Return the number of the inner jaxpr of a parameter."""
        for name in names:
            said = self.take(name)
            if isinstance(said, dict) and isinstance(number := said.get("jaxpr"), int):
                return number
        raise UnsayableError(names[0], "expected a jaxpr")

    def unnamed(self) -> list[Value]:
        """Return results that have no name, for nothing is written of them."""
        return [Value(text="None", aval=aval) for aval in self.outputs]

    def context(self) -> str:
        """Return the `with` that the equation stands under."""
        parts = []
        if (kind := self.take(COMPUTE_TYPE)) is not None:
            self.program.imports.add("from jax.experimental.compute_on import compute_on")
            parts.append(f"compute_on({plain(kind)})")
        if metadata := self.take("ctx xla_metadata"):
            self.program.imports.add("from jax.experimental.xla_metadata import set_xla_metadata")
            said = ", ".join(f"{key}={plain(value)}" for key, value in metadata)
            parts.append(f"set_xla_metadata({said})")
        return ", ".join(parts)

    def names(self) -> list[str]:
        """Return new names for the results, `_` for those that nothing reads."""
        base = BASES.get(self.primitive, self.primitive)
        single = len(self.used) == 1
        fresh = self.program.names.fresh
        return [fresh(base) if used or single else "_" for used in self.used]

    def write(self) -> list[Value]:
        """Write the statement.

        Returns:
            The results.
        """
        try:
            return self._write()
        except UnsayableError as error:
            said = Unsaid(self.primitive, error.parameter, error.why)
            self.program.unsaid.add(said)
            return self.unnamed()

    def _write(self) -> list[Value]:
        rule = self.body.rules.get(self.primitive)
        if rule is None:
            raise UnsayableError("", "no public function is known for it")
        context = self.context()
        said = rule(self)
        self._check_left()
        if isinstance(said, list):
            return said
        if isinstance(said, str):
            names = self.names()
            said = Assigned(", ".join(names) or "_", said, names)
        self.body.say(f"{said.target} = {said.expression}", context)
        made = zip(said.names, self.outputs, strict=True)
        return [Value(text=name, aval=aval) for name, aval in made]

    def _check_left(self) -> None:
        for name, value in self.eqn.params.items():
            if name not in self._taken and name not in HARMLESS and not says_nothing(value):
                raise UnsayableError(name, f"not known to be {plain(value)}")


def says_nothing(value: Any) -> bool:
    """Say whether a parameter is at a value that means what its absence does."""
    if isinstance(value, list):
        return all(says_nothing(part) for part in value)
    return value is None or value is False or value == "unspecified"
