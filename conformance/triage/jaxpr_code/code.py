"""A jaxpr as readable JAX code: a function that does the same by what jax publishes.

Each equation is one statement. What is called in the jaxpr is a function; functions of packages
(`jnp.where` is one) and those with rules of differentiation stand in place of their calls. Pure.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from packaging.version import Version

from conformance.errors import ConformanceError
from conformance.ir.jaxpr.document import decode
from conformance.triage.jaxpr_code import (
    arrays,
    control,
    indexing,
    linalg,
    loops,
    placing,
    reductions,
)
from conformance.triage.jaxpr_code.placing import mesh_text
from conformance.triage.jaxpr_code.program import Program, Unsaid
from conformance.triage.jaxpr_code.writer import Body

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from conformance.ir.jaxpr.document import Aval
    from conformance.triage.jaxpr_code.writer import Rule

RULES: Final[Mapping[str, Rule]] = {
    **arrays.RULES,
    **indexing.RULES,
    **control.RULES,
    **linalg.RULES,
    **loops.RULES,
    **placing.RULES,
    **reductions.RULES,
}
LETTERS: Final = ("x", "y", "z", "u", "v", "w")


class NotSayableError(ConformanceError):
    """A jaxpr holds something that no public function of jax says.

    Attributes:
        unsaid: What, each once.
    """

    def __init__(self, unsaid: tuple[Unsaid, ...]) -> None:
        told = "; ".join(map(str, unsaid))
        super().__init__(f"the jaxpr cannot be said as code of jax's public functions: {told}")
        self.unsaid = unsaid


@dataclass(frozen=True, slots=True, kw_only=True)
class Argument:
    """An input of the function.

    Attributes:
        name: Name of the parameter.
        shape: Size of each dimension.
        dtype: Element type.
        weak: Whether its type gives way to others, as that of Python's numbers does.
        spec: Axis names for each dimension, where its type says how it is sharded.
    """

    name: str
    shape: tuple[int | str, ...]
    dtype: str
    weak: bool = False
    spec: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Code:
    """A program as code.

    Attributes:
        name: Name of the function.
        arguments: Its parameters, one for each input of the jaxpr.
        constants: Parameters after these, for constants of which the jaxpr holds no more than a
            hash, or nothing: the caller has to know them.
        imports: Import statements, for all that the rest uses.
        meshes: Meshes by the name of the variable that holds each: axes as name, size and type.
        functions: Texts of the functions, the program's own last.
    """

    name: str
    arguments: tuple[Argument, ...]
    constants: tuple[Argument, ...]
    imports: tuple[str, ...]
    meshes: Mapping[str, tuple[tuple[str, int, str], ...]]
    functions: tuple[str, ...]

    @property
    def source(self) -> str:
        """The whole: imports, meshes over the first devices, functions."""
        made = [f"{name} = {mesh_text(axes)}" for name, axes in self.meshes.items()]
        heads = ["\n".join(part) for part in (self.imports, made) if part]
        return "\n\n".join(heads) + "\n\n\n" + "\n\n\n".join(self.functions) + "\n"


def code_of(document: bytes, *, release: str, name: str = "f", dead: bool = True) -> Code:
    """Say a jaxpr as code.

    Args:
        document: What `conformance.worker.jaxprs` wrote.
        release: The jax release it was traced with, whose spelling is used.
        name: Name for the function.
        dead: Whether equations that nothing comes of are said, too.

    Returns:
        The code; traced by that release it gives the jaxpr again.

    Raises:
        IrSyntaxError: If it is no such document.
        NotSayableError: If public functions do not say all of it.
    """
    read = decode(document.decode("utf-8", "surrogatepass"))
    program = Program(read, _numbers(release), dead)
    entry = read.jaxprs[0]
    body = Body(program, RULES, own=True)
    own = program.names.fresh(name)
    alone = len(entry.inputs) <= len(LETTERS)
    hints = LETTERS[: len(entry.inputs)] if alone else ["x"] * len(entry.inputs)
    given = program.fresh(entry.inputs, hints)
    signature = [value.text for value in given]

    def write(inner: Body) -> str:
        returned = inner.result(entry, given)
        signature.extend(value.text for value in program.held)
        return returned

    body.function(own, signature, write, context="")
    if any(isinstance(size, str) for aval in read.avals for size in aval.shape):
        program.unsaid.add(Unsaid("shape", "", "of symbolic dimensions"))
    if program.unsaid:
        raise NotSayableError(tuple(sorted(program.unsaid)))
    functions = (*program.functions, "\n".join(body.lines))
    return Code(
        name=own,
        arguments=tuple(_argument(value.text, value.aval) for value in given),
        constants=tuple(_argument(value.text, value.aval) for value in program.held),
        imports=tuple(_imports(program, "\n".join(functions))),
        meshes={mesh: tuple(map(_axis, axes)) for mesh, axes in program.meshes.items()},
        functions=functions,
    )


def _argument(name: str, aval: Aval) -> Argument:
    spec = tuple(tuple(part) for part in aval.more.sharding if isinstance(part, list))
    return Argument(
        name=name, shape=tuple(aval.shape), dtype=aval.dtype, weak=aval.more.weak_type, spec=spec
    )


def _axis(axis: Sequence[Any]) -> tuple[str, int, str]:
    return axis[0], axis[1], axis[2] if len(axis) > 2 else "Auto"  # noqa: PLR2004


def _numbers(release: str) -> tuple[int, ...]:
    return Version(release).release


def _imports(program: Program, text: str) -> Iterator[str]:
    """Yield the imports that a text needs, plain ones first."""
    named = set(program.imports)
    if program.meshes:
        named.add("from jax.sharding import Mesh")
    if program.meshes or re.search(r"\bjax\.", text):
        yield "import jax"
    if re.search(r"\bjnp\.", text):
        yield "import jax.numpy as jnp"
    if program.meshes or re.search(r"\bnp\.", text):
        yield "import numpy as np"
    if re.search(r"\blax\.", text):
        named.add("from jax import lax")
    yield from _joined(named)


def _joined(named: set[str]) -> Iterator[str]:
    """Yield import statements, those from one module as one."""
    together: dict[str, list[str]] = {}
    for statement in sorted(named):
        module, _, names = statement.removeprefix("from ").partition(" import ")
        together.setdefault(module, []).append(names)
    for module, imported in sorted(together.items()):
        yield f"from {module} import {', '.join(imported)}"
