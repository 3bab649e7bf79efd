"""Hypothesis strategies that draw programs."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Final

from hypothesis import strategies as st

from conformance.fuzz.array_type import ArrayType, has_inexact
from conformance.fuzz.input_values import draw_input
from conformance.fuzz.launch import LAUNCH_KINDS, LaunchKind, make_launch
from conformance.fuzz.operations import COSTLY, OPERATIONS
from conformance.fuzz.program import FuzzProgram, MovedOperand, Part, ProgramFunction, Transform
from conformance.fuzz.scope import MOST_ELEMENTS, MOSTLY, Scope, count_choices
from conformance.fuzz.transform import TransformFrame
from conformance.fuzz.transforms import TRANSFORMS
from conformance.fuzz.value_tables import LENGTH, draw_constant_input, draw_table_input

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from conformance.fuzz.operation import Operation
    from conformance.fuzz.scope import Draw
    from conformance.fuzz.transform import TransformKind

MOST_STEPS: Final = 5
"""Steps of the innermost function: small programs compile fast, and most differences are small."""
MOST_TRANSFORMS: Final = 3
"""Transforms around it."""
MORE: Final = 45
"""Per cent of steps and of transforms that another one follows."""
COSTLY_RATE: Final = 24
"""One step of so many is costly, see `COSTLY`."""


class Values(Enum):
    """Values of the arguments of programs."""

    DRAWN = "drawn"
    """A few values, or random numbers."""
    CONSTANT = "constant"
    """One value each: differences of elements, and their spread, are zero."""
    TABLE = "table"
    """Long vectors of special values, see `conformance.fuzz.value_tables`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramSpace:
    """The programs to draw from.

    Attributes:
        operations: Operations of their steps.
        transforms: Transforms to draw those around them from.
        around: Transforms around each of them, the innermost first; None to draw them.
        launches: Kinds of launches.
        steps: The most steps of the innermost function.
        values: Values of their arguments.
        x64: Whether they run with 64-bit types enabled.
    """

    # Hypothesis shows its strategies: hundreds of operations are slow to show.
    operations: tuple[Operation, ...] = field(default=OPERATIONS, repr=False)
    transforms: tuple[TransformKind, ...] = field(default=TRANSFORMS, repr=False)
    around: tuple[TransformKind, ...] | None = None
    launches: tuple[LaunchKind, ...] = LAUNCH_KINDS
    steps: int = MOST_STEPS
    values: Values = Values.DRAWN
    x64: bool = False


@st.composite
def programs(draw: Draw, space: ProgramSpace) -> FuzzProgram:
    """Draw a program.

    Args:
        draw: Draws from a strategy.
        space: The programs to draw from.
    """
    scope = Scope(draw=draw, x64=space.x64, length=LENGTH if space.values is Values.TABLE else 0)
    # Drawn before the steps, which can then be cut without it.
    launch_switch = count_choices()
    launch_kind = scope.choose(space.launches)
    drawn = [*_draw_transforms(scope, space)]
    for number, one in enumerate(drawn):
        with scope.record() as choices:
            one.frame = one.kind.make_frame(scope, number)
        one.choices += choices
    if launch_kind.mesh:  # a program has one mesh
        drawn = [one for one in drawn if not one.frame.mesh]
    scope.axes = {name: size for one in drawn for name, size in one.frame.axes.items()}
    modes = {mode for one in drawn for mode in one.kind.modes}

    def is_usable(operation: Operation) -> bool:
        return bool(scope.axes or not operation.needs_axis) and not modes & {*operation.lacks}

    steps = [*_draw_steps(scope, space, is_usable)]
    body = _make_body(scope, inexact=bool(modes))
    # What the choices of each argument are left out with.
    owners = [
        next((one.choices for one in steps if variable.name in one.parameters), [])
        for variable in body.parameters
    ]
    transforms = _apply_transforms(scope, drawn, body, owners)
    types = transforms[-1].types if transforms else tuple(one.type for one in body.parameters)
    inputs: list[str] = []
    values: list[tuple[int, int]] = []
    for type_, owner in zip(types, owners, strict=True):
        with scope.record() as choices:
            inputs.append(_draw_argument(scope, space, type_, len(inputs)))
        values += choices
        owner.extend(choices)
    with scope.record() as choices:
        launch = make_launch(scope, launch_kind, types)
    devices = max([1, *(one.frame.devices for one in drawn)])
    names = [variable.name for variable in body.parameters]
    kept = dict(zip(names, values[len(values) - len(names) :], strict=True))
    return FuzzProgram(
        body=body,
        transforms=tuple(transforms),
        inputs=tuple(inputs),
        launch=launch,
        devices=max(devices, launch.devices if launch else 1),
        x64=space.x64,
        parts=(
            Part((*choices,), launch_switch),
            *(Part((*one.choices,), one.switch) for one in drawn),
            *scope.parts,
            *(Part((*one.choices,), operand=one.find_operand(scope, kept)) for one in steps),
        ),
        ranges=tuple(scope.ranges),
    )


def _apply_transforms(
    scope: Scope,
    drawn: Sequence[_DrawnTransform],
    body: ProgramFunction,
    owners: list[list[tuple[int, int]]],
) -> list[Transform]:
    """Return the transforms of a program, the innermost first; one that does not fit is left out.

    Args:
        scope: Its scope.
        drawn: The transforms.
        body: The innermost function.
        owners: For each parameter the choices of what it is left out with; gets those of the
            parameters that transforms add, which come first.
    """
    transforms: list[Transform] = []
    types = tuple(variable.type for variable in body.parameters)
    results = tuple(variable.type for variable in body.results)
    for one in drawn:
        with scope.record() as choices:
            made = one.kind.apply(scope, one.frame, types, results)
        one.choices += choices
        if made is None or any(each.size > MOST_ELEMENTS for each in (*made.types, *made.results)):
            if one.frame.axes:
                break  # the collectives of the body have no axis without it
            continue
        transforms.append(made)
        owners[:0] = [one.choices] * (len(made.types) - len(types))
        types, results = made.types, made.results
    return transforms


def _draw_argument(scope: Scope, space: ProgramSpace, type_: ArrayType, number: int) -> str:
    if space.values is Values.TABLE:
        return draw_table_input(scope, type_, number)
    draw = draw_constant_input if space.values is Values.CONSTANT else draw_input
    return draw(scope, type_)


@dataclass(slots=True)
class _DrawnStep:
    """A step while a program is drawn.

    Attributes:
        choices: Start and end of its choices, then those of the values of each parameter it added.
        parameters: Names of these.
        results: Names of its results.
    """

    choices: list[tuple[int, int]]
    parameters: frozenset[str]
    results: frozenset[str]

    def find_operand(
        self, scope: Scope, values: Mapping[str, tuple[int, int]]
    ) -> MovedOperand | None:
        """Return what becomes of its operand without it; None if no later step needs it.

        Args:
            scope: The scope of the program.
            values: Start and end of the choices of the values of each parameter.
        """
        _, end = self.choices[0]
        own = [one for one in scope.picks if one.variable.name in self.parameters and one.type]
        later = [
            one for one in scope.picks if one.position >= end and one.variable.name in self.results
        ]
        if not own or len(later) != 1:
            return None
        first = own[0]
        assert first.type is not None  # noqa: S101 - for mypy
        return MovedOperand(later[0].position, first.type, values[first.variable.name])


@dataclass(slots=True)
class _DrawnTransform:
    """A transform while a program is drawn.

    Attributes:
        kind: Its kind.
        choices: Start and end of each sequence of its choices so far.
        switch: See `Part`.
        frame: What it offers to the function within it, once that is drawn.
    """

    kind: TransformKind
    choices: list[tuple[int, int]]
    switch: int | None = None
    frame: TransformFrame = field(default_factory=lambda: TransformFrame(number=0))


def _draw_transforms(scope: Scope, space: ProgramSpace) -> Iterator[_DrawnTransform]:
    """Yield the transforms of a program, the innermost first."""
    for given in space.around or ():
        switch = count_choices()
        if scope.happens(MOSTLY):
            yield _DrawnTransform(given, [], switch)
    kinds: list[TransformKind] = []
    for _ in range(MOST_TRANSFORMS if space.around is None else 0):
        with scope.record() as choices:
            kind = _draw_transform(scope, space, kinds)
        if kind is None:
            break
        kinds.append(kind)
        yield _DrawnTransform(kind, choices)


def _draw_transform(
    scope: Scope, space: ProgramSpace, inner: Sequence[TransformKind]
) -> TransformKind | None:
    """Draw the next transform around others, None for no more."""
    more = scope.happens(MORE)
    return scope.choose_fitting(space.transforms, lambda kind: kind.fits(inner)) if more else None


def _draw_step(
    scope: Scope, operations: Sequence[Operation], is_usable: Callable[[Operation], bool]
) -> bool:
    """Add a step to a scope, and return True; False for no more, unless it is the first one."""
    # A step begins with this draw even if it is the first, so that the one before it can be cut.
    more = scope.happens(MORE)
    if scope.steps and not more:
        return False
    rare = scope.rarely(COSTLY_RATE)
    pools = (
        [one for one in operations if (one.name in COSTLY) is costly] for costly in (rare, not rare)
    )
    chosen = (scope.choose_fitting(pool, is_usable) for pool in pools)
    operation = next((one for one in chosen if one), None)
    if operation is None:
        return False  # only collectives are allowed, and there is no axis
    operation.rule(scope, operation)
    return True


def _draw_steps(
    scope: Scope, space: ProgramSpace, is_usable: Callable[[Operation], bool]
) -> Iterator[_DrawnStep]:
    """Add the steps of the innermost function to its scope, and yield each.

    Args:
        scope: Its scope.
        space: The programs to draw from.
        is_usable: Whether an operation can be used within the transforms of the program.
    """
    for _ in range(space.steps):
        known = len(scope.inputs), len(scope.steps)
        with scope.record() as choices:
            more = _draw_step(scope, space.operations, is_usable)
        if not more:
            break
        new = scope.steps[known[1] :]
        yield _DrawnStep(
            choices,
            parameters=frozenset(variable.name for variable in scope.inputs[known[0] :]),
            results=frozenset(variable.name for step in new for variable in step.results),
        )


def _make_body(scope: Scope, *, inexact: bool) -> ProgramFunction:
    """Return the innermost function.

    Args:
        scope: Its scope.
        inexact: Whether its results must be floating-point or complex, to be differentiated.
    """
    if not scope.variables:
        scope.add_input(ArrayType((), "float32"))
    used = {name for step in scope.steps for name in step.operands}
    results = [variable for variable in scope.variables if variable.name not in used]
    if inexact:
        results = [variable for variable in results if has_inexact(variable.type)]
        if not results:
            last = scope.variables[-1]
            results = [*scope.add(".astype", '{0}.astype("float32")', [last],
                                  last.type.with_dtype("float32"))]  # fmt: skip
    returns = ", ".join(variable.name for variable in results)
    return ProgramFunction(
        name="body", parameters=tuple(scope.inputs), steps=tuple(scope.steps),
        returns=returns if len(results) == 1 else f"({returns})", results=tuple(results),
    )  # fmt: skip
