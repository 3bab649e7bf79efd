"""The state shared by all functions of a written program: values, names, meshes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from conformance.errors import ConformanceError
from conformance.triage.jaxpr_code.literals import (
    Names,
    render_dtype,
    render_items,
    render_number,
    render_plain,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from conformance.ir.jaxpr.document import Atom, Aval, JaxprDocument


class UnsupportedJaxprError(ConformanceError):
    """No public function of jax expresses a part of a jaxpr.

    Args:
        subject: The primitive, with its parameter if that is not supported.
        why: The reason in a few words.
    """

    def __init__(self, subject: str, why: str) -> None:
        super().__init__(f"the jaxpr has no code of jax's public functions: {subject}: {why}")


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeValue:
    """The code of an atom.

    Attributes:
        text: A name; or a number, of a NumPy dtype unless its type is weak.
        aval: Its type.
        bare: The number as a Python literal, empty for a name.
        is_traced: Whether jax traces the value, so that it has operators and methods.
    """

    text: str
    aval: Aval
    bare: str = ""
    is_traced: bool = True

    @property
    def is_weak(self) -> bool:
        """Whether its type is weak."""
        return self.aval.more.weak_type

    @property
    def staged_text(self) -> str:
        """Text of a traced value: jax evaluates functions of plain numbers at once."""
        return self.text if self.is_traced else f"jax.jit(lambda: {self.text})()"

    @property
    def hint(self) -> str:
        """Name for a parameter that is given this value."""
        if self.text.isidentifier() and not self.bare:
            return self.text
        whole = self.aval.dtype.startswith(("int", "uint")) and not self.aval.shape
        return "i" if whole else "c"


@dataclass(eq=False)
class WrittenProgram:
    """The state shared by all functions of a program.

    Attributes:
        document: The jaxprs.
        release: The jax release whose spelling is used.
        rules: The rule of each primitive, a function of its `Equation`.
        meshes: Meshes by their name, as `conformance.worker.jaxprs` writes them.
        functions: Texts of the functions at the top level, except the program's own.
        jitted: Names of these functions, by their jaxpr and the context in which they are traced.
    """

    document: JaxprDocument
    release: tuple[int, ...]
    rules: Mapping[str, Callable[[Any], Any]]
    names: Names = field(default_factory=Names)
    meshes: dict[str, list[Any]] = field(default_factory=dict)
    functions: list[str] = field(default_factory=list)
    jitted: dict[tuple[int, str], str] = field(default_factory=dict)

    def name_mesh(self, axes: list[Any]) -> str:
        """Return the name of a mesh, which is made only once, before all functions."""
        # A search, since the axes of a mesh are a list; programs have few meshes.
        for name, known in self.meshes.items():
            if known == axes:
                return name
        name = self.names.reserve("mesh")
        self.meshes[name] = axes
        return name

    def render_meshes(self) -> list[str]:
        """Return the statements that make the meshes."""
        statements = []
        for name, axes in self.meshes.items():
            sizes, names = ([axis[part] for axis in axes] for part in (1, 0))
            # `env.mesh` makes either all axes explicit or none.
            explicit = all("Explicit" in axis for axis in axes)
            more = ", explicit=True" if explicit else ""
            shape = render_items([render_plain(size) for size in sizes])
            axis_names = render_items([render_plain(axis_name) for axis_name in names])
            statements.append(f"{name} = env.mesh({shape}, {axis_names}{more})")
        return statements

    def make_variables(self, avals: Sequence[int], hints: Sequence[str]) -> list[CodeValue]:
        """Return new variables, e.g. the parameters of a function."""
        return [
            CodeValue(text=self.names.reserve(hint), aval=self.document.avals[aval])
            for aval, hint in zip(avals, hints, strict=True)
        ]

    def render_atom(self, atom: Atom, values: Sequence[CodeValue]) -> CodeValue:
        """Return the code of an atom."""
        if isinstance(atom, int):
            return values[atom]
        aval = self.document.avals[atom.aval]
        bare = None if aval.shape else render_number(atom.value, aval.dtype)
        if bare is None:
            raise UnsupportedJaxprError("literal", f"of type {aval.dtype}{aval.shape}")
        return make_number(bare, aval)


def make_number(bare: str, aval: Aval) -> CodeValue:
    """Return the code of a number of a type."""
    # Python's own numbers are weak; a boolean has no weak type.
    if aval.more.weak_type or aval.dtype == "bool":
        text = bare
    # NumPy itself has no such scalar types.
    elif aval.dtype == "bfloat16" or aval.dtype.startswith("float8"):
        text = f"np.array({bare}, {render_dtype(aval.dtype)})"
    else:
        text = f"np.{aval.dtype}({bare.replace('jnp.', 'np.')})"
    return CodeValue(text=text, aval=aval, bare=bare, is_traced=False)
