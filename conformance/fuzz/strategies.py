"""Hypothesis strategies that draw programs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from hypothesis import strategies as st

from conformance.fuzz.array_type import ArrayType, has_inexact
from conformance.fuzz.input_values import draw_input
from conformance.fuzz.launch import LAUNCH_KINDS, make_launch
from conformance.fuzz.operations import COSTLY, OPERATIONS
from conformance.fuzz.program import FuzzProgram, ProgramFunction, Transform
from conformance.fuzz.scope import MOST_ELEMENTS, Scope
from conformance.fuzz.transforms import TRANSFORMS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

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


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramSpace:
    """The programs to draw from.

    Attributes:
        operations: Operations of their steps.
        transforms: Transforms around them.
        x64: Whether they run with 64-bit types enabled.
    """

    operations: tuple[Operation, ...] = OPERATIONS
    transforms: tuple[TransformKind, ...] = TRANSFORMS
    x64: bool = False


@st.composite
def programs(draw: Draw, space: ProgramSpace) -> FuzzProgram:
    """Draw a program.

    Args:
        draw: Draws from a strategy.
        space: The programs to draw from.
    """
    scope = Scope(draw=draw, x64=space.x64)
    # Drawn before the steps, which can then be cut without it.
    launch_kind = scope.choose(LAUNCH_KINDS)
    kinds: list[TransformKind] = []
    for _ in range(MOST_TRANSFORMS):
        with scope.part():
            kind = _draw_transform(scope, space, kinds)
        if kind is None:
            break
        kinds.append(kind)
    framed = [(kind, kind.make_frame(scope, number)) for number, kind in enumerate(kinds)]
    if launch_kind.mesh:  # a program has one mesh
        framed = [(kind, frame) for kind, frame in framed if not frame.mesh]
    scope.axes = {name: size for _, frame in framed for name, size in frame.axes.items()}
    modes = {mode for kind, _ in framed for mode in kind.modes}

    def is_usable(operation: Operation) -> bool:
        return bool(scope.axes or not operation.needs_axis) and not modes & {*operation.lacks}

    body = _draw_body(scope, space.operations, is_usable, inexact=bool(modes))
    transforms: list[Transform] = []
    types = tuple(variable.type for variable in body.parameters)
    results = tuple(variable.type for variable in body.results)
    for kind, frame in framed:
        made = kind.apply(scope, frame, types, results)
        if made is None or any(one.size > MOST_ELEMENTS for one in (*made.types, *made.results)):
            if frame.axes:
                break  # the collectives of the body have no axis without it
            continue
        transforms.append(made)
        types, results = made.types, made.results
    inputs = tuple(draw_input(scope, type_) for type_ in types)
    devices = max([1, *(frame.devices for _, frame in framed)])
    launch = make_launch(scope, launch_kind, types)
    return FuzzProgram(
        body=body,
        transforms=tuple(transforms),
        inputs=inputs,
        launch=launch,
        devices=max(devices, launch.devices if launch else 1),
        x64=space.x64,
        parts=tuple(scope.parts),
    )


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


def _draw_body(
    scope: Scope,
    operations: Sequence[Operation],
    is_usable: Callable[[Operation], bool],
    *,
    inexact: bool,
) -> ProgramFunction:
    """Draw the innermost function.

    Args:
        scope: Its scope.
        operations: Operations to choose from.
        is_usable: Whether one can be used within the transforms of the program.
        inexact: Whether its results must be floating-point or complex, to be differentiated.
    """
    for _ in range(MOST_STEPS):
        with scope.part():
            more = _draw_step(scope, operations, is_usable)
        if not more:
            break
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
