"""What a program is while it is written as code: its values, names, meshes, what cannot be said."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from conformance.triage.jaxpr_code.text import Names, dtype, number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from conformance.ir.jaxpr.document import Atom, Aval, Document, Jaxpr


class UnsayableError(Exception):
    """Raised by a rule whose equation has no spelling.

    Attributes:
        parameter: The parameter that stands in the way; empty for the primitive itself.
        why: Why, in a few words.
    """

    def __init__(self, parameter: str, why: str) -> None:
        super().__init__(parameter, why)
        self.parameter, self.why = parameter, why


@dataclass(frozen=True, slots=True, order=True)
class Unsaid:
    """Something of a jaxpr that has no spelling.

    Attributes:
        primitive: The primitive; `constant` or `literal` for these.
        parameter: The parameter that stands in the way; empty for the primitive itself.
        why: Why, in a few words.
    """

    primitive: str
    parameter: str
    why: str

    def __str__(self) -> str:
        of = f", parameter {self.parameter}" if self.parameter else ""
        return f"{self.primitive}{of}: {self.why}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """What an atom is in the code.

    Attributes:
        text: A name; or a number, typed as NumPy says it unless its type is weak.
        aval: Its type.
        bare: For numbers: as Python says it, without a type.
        traced: Whether it is jax's, so that its operators and methods are.
    """

    text: str
    aval: Aval
    bare: str = ""
    traced: bool = True

    @property
    def weak(self) -> bool:
        """Whether its type gives way to others."""
        return self.aval.more.weak_type

    @property
    def staged(self) -> str:
        """Text of the same as a value of jax's: with numbers it computes at once."""
        return self.text if self.traced else f"jax.jit(lambda: {self.text})()"


@dataclass(frozen=True, slots=True)
class Assigned:
    """A statement whose target is more than the names of the results.

    Attributes:
        names: Of the results.
    """

    target: str
    expression: str
    names: list[str]


@dataclass(eq=False)
class Program:
    """What all functions of a program share.

    Attributes:
        meshes: Meshes by their name, as `conformance.worker.jaxprs` writes them.
        functions: Texts of the functions at the top level, but for the program's own.
        held: Parameters for constants that are not known here.
        jitted: Names of those by the jaxpr they say and the context they are traced in.
    """

    document: Document
    release: tuple[int, ...]
    dead: bool
    names: Names = field(default_factory=Names)
    imports: set[str] = field(default_factory=set)
    meshes: dict[str, list[Any]] = field(default_factory=dict)
    functions: list[str] = field(default_factory=list)
    held: list[Value] = field(default_factory=list)
    jitted: dict[tuple[int, str], str] = field(default_factory=dict)
    unsaid: set[Unsaid] = field(default_factory=set)

    def mesh(self, axes: list[Any]) -> str:
        """Return the name of a mesh; it is made once, before all functions."""
        for name, known in self.meshes.items():
            if known == axes:
                return name
        name = self.names.fresh("mesh")
        self.meshes[name] = axes
        return name

    def fresh(self, avals: Sequence[int], hints: Sequence[str]) -> list[Value]:
        """Return new variables, e.g. what a function is given."""
        return [
            Value(text=self.names.fresh(hint), aval=self.document.avals[aval])
            for aval, hint in zip(avals, hints, strict=True)
        ]

    def parameters(self, jaxpr: Jaxpr, start: int, values: Sequence[Value]) -> list[Value]:
        """Return parameters for inputs of a jaxpr from one on, called after what they are given."""
        avals = jaxpr.inputs[start : start + len(values)]
        return self.fresh(avals, [_hint(value) for value in values])

    def atom(self, atom: Atom, values: Sequence[Value]) -> Value:
        """Return what an atom is in the code."""
        if isinstance(atom, int):
            return values[atom]
        aval = self.document.avals[atom.aval]
        bare = None if aval.shape else number(atom.value, aval.dtype)
        if bare is None:
            self.unsaid.add(Unsaid("literal", "", f"of type {aval.dtype}{aval.shape}"))
        return numeral(bare or "None", aval)


def _hint(value: Value) -> str:
    if value.text.isidentifier() and not value.bare:
        return value.text
    whole = value.aval.dtype.startswith(("int", "uint")) and not value.aval.shape
    return "i" if whole else "c"


def numeral(bare: str, aval: Aval) -> Value:
    """Return a number of a type."""
    if aval.more.weak_type or aval.dtype == "bool":
        text = bare
    elif aval.dtype == "bfloat16" or aval.dtype.startswith("float8"):
        text = f"np.array({bare}, {dtype(aval.dtype)})"
    else:
        text = f"np.{aval.dtype}({bare.replace('jnp.', 'np.')})"
    return Value(text=text, aval=aval, bare=bare, traced=False)
