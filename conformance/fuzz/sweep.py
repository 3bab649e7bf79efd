"""Sweeps: programs of one operation each, over all operations and the ways to use them."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from conformance.fuzz.launch import EXPLICIT, LAUNCH_KINDS
from conformance.fuzz.operations import COSTLY, elementwise
from conformance.fuzz.strategies import ProgramSpace, Values
from conformance.fuzz.transforms import TRANSFORMS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from conformance.fuzz.operation import Operation


class Use(NamedTuple):
    """A way to use an operation.

    Attributes:
        transforms: Names of the transforms around it, the innermost first.
        launch: Name of the launch, see `conformance.fuzz.launch`.
        values: Values of the arguments, unless the operation is pointwise.
        kinds: So many of the kinds of dtypes of a pointwise operation; None for all.
    """

    transforms: tuple[str, ...] = ()
    launch: str = ""
    values: Values = Values.DRAWN
    kinds: int | None = None


USES: Final = (
    Use(kinds=1), Use(("grad",)), Use(values=Values.CONSTANT), Use(("jvp", "grad")),
    Use(launch=EXPLICIT), Use(), Use(("vmap",)), Use(("grad",), values=Values.CONSTANT),
    Use(("shard_map",)), Use(("jvp",)), Use(), Use(("linear_transpose",)),
    Use(values=Values.CONSTANT), Use(("vmap", "grad")), Use(launch=EXPLICIT), Use(("grad",)),
    Use(("jit(shardings)",)), Use(("scan",)), Use(("shard_map", "grad")),
    Use(("grad", "shard_map")), Use(("checkpoint", "grad")), Use(("export",)),
)  # fmt: skip
"""The uses of each operation in turn: of the next one when all operations had this one."""
DERIVATIVES: Final = frozenset({"grad", "jvp", "linear_transpose"})
"""Transforms by which an integer has no derivative."""
DISCRETE: Final = frozenset({"int", "uint", "bool"})
"""Kinds of dtypes without derivatives."""
RARE: Final = (True, True, False, False, True, False, False)
"""Turns in which costly operations are among them, see `COSTLY`. All uses meet all of these: their
numbers have no common divisor."""
POINTWISE: Final = frozenset(
    {
        elementwise.draw_unary, elementwise.draw_unary_call, elementwise.draw_binary,
        elementwise.draw_lax_binary, elementwise.draw_ternary, elementwise.draw_clip,
        elementwise.draw_conversion, elementwise.draw_scaling, elementwise.draw_view,
        elementwise.draw_reduce_precision, elementwise.draw_integer_power, elementwise.draw_where,
        elementwise.draw_select,
    }
)  # fmt: skip
"""Rules of operations whose elements do not depend on each other: a long input is many tests."""


def _list_turns(operations: Sequence[Operation]) -> Iterator[tuple[Operation, Use]]:
    """Yield operations and their uses without end."""
    others = [one for one in operations if one.name not in COSTLY]
    for use, rare in zip(itertools.cycle(USES), itertools.cycle(RARE), strict=False):
        for operation in operations if rare or not others else others:
            yield operation, use


def _narrow(operation: Operation, use: Use) -> Operation:
    """Return an operation with the kinds of dtypes that a use tries, the first ones."""
    kinds = operation.kinds[: use.kinds]
    if not DERIVATIVES.isdisjoint(use.transforms):
        kinds = tuple(kind for kind in kinds if kind not in DISCRETE) or kinds
    return replace(operation, kinds=kinds)


def plan_sweep(
    operations: Sequence[Operation], start: int, count: int, *, x64: bool
) -> Iterator[ProgramSpace]:
    """Yield the spaces of the programs of a sweep, each to be drawn from once.

    Args:
        operations: The operations.
        start: Programs of the sweep that came before.
        count: Programs to plan.
        x64: Whether they run with 64-bit types enabled.
    """
    kinds = {kind.name: kind for kind in TRANSFORMS}
    for operation, use in itertools.islice(_list_turns(operations), start, start + count):
        is_pointwise = operation.rule in POINTWISE
        launches = tuple(kind for kind in LAUNCH_KINDS if kind.name == use.launch)
        # The first one, which is the simplest, is that by `jit` alone.
        launches = (LAUNCH_KINDS[0], *launches * 4) if use.launch else LAUNCH_KINDS[:1]
        yield ProgramSpace(
            operations=(_narrow(operation, use) if is_pointwise else operation,),
            around=tuple(kinds[name] for name in use.transforms),
            launches=launches,
            steps=1,
            values=Values.TABLE if is_pointwise else use.values,
            x64=x64,
        )
