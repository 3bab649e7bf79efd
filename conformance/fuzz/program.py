"""Generated programs: a function of typed steps, the transforms around it, and its inputs."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from conformance.fuzz.array_type import ArrayType

INDENT: Final = "    "
HEAD: Final = """\
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
"""
"""Imports of every rendered program."""


NORMWISE: Final = (
    "jnp.fft.", "jnp.linalg.", "jax.scipy.linalg.", "lax.linalg.", "lax.conv", "lax.dot", "lax.rag",
    "lax.batch_matmul", "jnp.matmul", "jnp.dot", "jnp.vdot", "jnp.inner", "jnp.einsum",
    "jnp.tensordot", "jnp.convolve", "jnp.correlate", "jax.scipy.signal.", "jnp.cov",
    "jnp.corrcoef", "jax.nn.dot_product_attention", "lax.associative_scan", "jnp.cum", "lax.cum",
    "jax.image.", "jnp.polyval", "jnp.polyfit", "jnp.cross", "jax.scipy.fft.",
)  # fmt: skip
"""Beginnings of operations that add many products: the rounding error of an element of their result
is relative to the largest one, not to itself."""


class Variable(NamedTuple):
    """A variable of a program.

    Attributes:
        name: Name in the rendered program, unique within it.
        type: Type.
    """

    name: str
    type: ArrayType


VMAP: Final = """\
def vmap(f, in_axes, out_axes):
    def mapped(*args):
        size = next(np.shape(a)[i] for a, i in zip(args, in_axes) if i is not None)
        rows = [
            f(*(a if i is None else np.take(a, row, i) for a, i in zip(args, in_axes)))
            for row in range(size)
        ]
        if isinstance(rows[0], tuple):
            return tuple(np.stack(column, out_axes) for column in zip(*rows))
        return np.stack(rows, out_axes)
    return mapped
"""
"""`jax.vmap` in NumPy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramFunction:
    """A function of typed steps.

    Attributes:
        name: Name, unique within the program.
        parameters: Its parameters.
        steps: Its steps, in order.
        returns: Expression that it returns.
        results: Variables that the expression is made of.
    """

    name: str
    parameters: tuple[Variable, ...]
    steps: tuple[Step, ...]
    returns: str
    results: tuple[Variable, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """The call of one operation.

    Attributes:
        operation: Name of the operation, e.g. `jnp.cumsum`.
        code: The call as a Python expression of variables.
        twin: The same in NumPy, with the same variables as arrays of float64 for floating-point
            ones; empty if NumPy has no equal operation.
        operands: Names of the variables in the call.
        results: Variables that it defines.
        functions: Functions that the call takes, defined before it.
    """

    operation: str
    code: str
    twin: str = ""
    operands: tuple[str, ...] = ()
    results: tuple[Variable, ...]
    functions: tuple[ProgramFunction, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Transform:
    """A transform around the function of a program.

    Attributes:
        name: Name, e.g. `vmap`.
        code: The transformed function as a Python expression, with `{f}` for the function.
        statements: Statements before it, e.g. one that makes a mesh.
        twin: The same in NumPy, see `VMAP`; empty if NumPy has no equal transform.
        types: Types of the parameters of the transformed function.
        results: Types of its results.
    """

    name: str
    code: str
    statements: tuple[str, ...] = ()
    twin: str = ""
    types: tuple[ArrayType, ...]
    results: tuple[ArrayType, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """How a program is launched in place of `jax.jit(function)(*args)`.

    Attributes:
        name: Name, which a finding lists among its transforms.
        statements: Statements that define `launch(function, args)`.
        devices: Number of devices that it needs.
    """

    name: str
    statements: tuple[str, ...]
    devices: int = 1


class MovedOperand(NamedTuple):
    """How a later step gets the operand of a step that is left out, in place of its result.

    Attributes:
        position: Position of the choice by which the later step takes the result.
        type: Start and end of the choices of the operand's type, which follow 0 there.
        values: Start and end of the choices of its values, which stay.
    """

    position: int
    type: tuple[int, int]
    values: tuple[int, int]


class Part(NamedTuple):
    """A part that can be left out of a program, as choices of Hypothesis for the program.

    Attributes:
        choices: Start and end of each sequence of its choices.
        switch: Position of a choice that is 0 without it; None if it is left out with its choices.
        operand: What becomes of the operand of a step; None if no later step needs it.
    """

    choices: tuple[tuple[int, int], ...] = ()
    switch: int | None = None
    operand: MovedOperand | None = None


class ValueRange(NamedTuple):
    """A range of a table of values, as choices of Hypothesis.

    Attributes:
        position: Position of three choices: 0 for not the whole table, where the range begins, and
            how many values it has more than one.
        start: Where it begins.
        size: How many values it has.
        repeats: How often each value comes before the next one; all of them are repeated over the
            input.
    """

    position: int
    start: int
    size: int
    repeats: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class FuzzProgram:
    """A generated program.

    Attributes:
        body: The innermost function.
        transforms: Transforms around it, the innermost first.
        inputs: Python expressions of the arguments of the outermost function.
        launch: How it is launched; None for by `jit` alone.
        devices: Number of devices that it needs.
        x64: Whether 64-bit types are enabled.
        parts: Its parts: steps, transforms, launch, lengths of vectors.
        ranges: Ranges of tables that its inputs are made of.
    """

    body: ProgramFunction
    transforms: tuple[Transform, ...] = ()
    inputs: tuple[str, ...] = ()
    launch: Launch | None = None
    devices: int = 1
    x64: bool = False
    parts: tuple[Part, ...] = field(default=(), compare=False)
    ranges: tuple[ValueRange, ...] = field(default=(), compare=False)

    @property
    def id(self) -> str:
        """16 hexadecimal digits of a hash of the program; equal programs have equal ids."""
        text = f"{self.render()}\n{self.devices} {self.x64}"
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @property
    def operations(self) -> frozenset[str]:
        """Names of its operations."""
        return frozenset(step.operation for step in _walk(self.body))

    @property
    def around(self) -> tuple[str, ...]:
        """Names of its transforms, the innermost first, and of its launch."""
        names = [transform.name for transform in self.transforms]
        return (*names, self.launch.name) if self.launch else (*names,)

    @property
    def dtypes(self) -> dict[str, str]:
        """Dtype of each parameter and result of a step, by the number in its name."""
        results = [variable for step in _walk(self.body) for variable in step.results]
        variables = (*self.body.parameters, *results)
        return {variable.name[1:]: variable.type.dtype for variable in variables}

    def render(self, options: RenderOptions | None = None) -> str:
        """Return the program as Python source that defines `function` and `args`, maybe `launch`.

        Args:
            options: Spelling of the program; by default that for people.
        """
        options = options or RenderOptions()
        lines = [*HEAD.splitlines(), "", *_render_function(self.body, options), ""]
        name = self.body.name
        for number, transform in enumerate(self.transforms):
            lines += transform.statements
            lines.append(f"f{number} = {transform.code.replace('{f}', name)}")
            name = f"f{number}"
        lines.append(f"function = {name}")
        lines.append("args = (")
        lines += [f"{INDENT}{text}," for text in self.inputs]
        lines.append(")")
        if self.launch:
            lines += self.launch.statements
        return "\n".join(lines) + "\n"

    def render_twin(self, *, perturbed: bool = True) -> str:
        """Return the program in NumPy as the source of a function `reference`.

        It is empty unless all of its operations and transforms have a twin.

        Args:
            perturbed: Whether results pass through `perturb`, see `RenderOptions`.
        """
        if not all(step.twin for step in _walk(self.body)):
            return ""
        if not all(transform.twin for transform in self.transforms):
            return ""
        twin = "{f}"
        for transform in self.transforms:
            twin = transform.twin.replace("{f}", twin)
        options = RenderOptions(twin=True, perturbed=perturbed)
        if twin == "{f}":
            lines = [*_render_function(replace(self.body, name="reference"), options)]
        else:
            lines = [*VMAP.splitlines(), *_render_function(self.body, options)]
            lines.append(f"reference = {twin.replace('{f}', self.body.name)}")
        lines[:0] = ["import numpy as np", ""]
        return "\n".join(lines) + "\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class RenderOptions:
    """How a program is spelled.

    Attributes:
        perturbed: Whether each parameter and result of a step is passed through
            `perturb(VALUE, NUMBER, NORMWISE)`, which models the rounding of the step; see
            `NORMWISE`.
        twin: Whether the steps are those of NumPy.
        replacements: Operations that are spelled otherwise, by name.
    """

    perturbed: bool = False
    twin: bool = False
    replacements: Mapping[str, str] = field(default_factory=dict)


def _render_function(function: ProgramFunction, options: RenderOptions) -> Iterator[str]:
    names = ", ".join(variable.name for variable in function.parameters)
    yield f"def {function.name}({names}):"
    if options.perturbed:
        for variable in function.parameters:
            yield _perturb(variable, normwise=False)
    for step in function.steps:
        for inner in step.functions:
            yield from (INDENT + line for line in _render_function(inner, options))
        targets = ", ".join(variable.name for variable in step.results)
        yield f"{INDENT}{targets} = {step.twin if options.twin else step.code}"
        if options.perturbed:
            normwise = step.operation.startswith(NORMWISE)
            for variable in step.results:
                yield _perturb(variable, normwise=normwise)
    yield f"{INDENT}return {function.returns}"


def _perturb(variable: Variable, *, normwise: bool) -> str:
    name = variable.name
    return f"{INDENT}{name} = perturb({name}, {int(name[1:])}, {normwise})"


def _walk(function: ProgramFunction) -> Iterator[Step]:
    """Yield the steps of a function and of the functions within it."""
    for step in function.steps:
        yield step
        for inner in step.functions:
            yield from _walk(inner)
