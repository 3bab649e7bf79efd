"""How a program is launched: by `jit` alone, with donated arguments, or on an Explicit mesh."""

from __future__ import annotations

import math
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

from conformance.fuzz.program import Launch

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from conformance.fuzz.array_type import ArrayType
    from conformance.fuzz.scope import Scope

DONATE: Final = "donate"
EXPLICIT: Final = "explicit mesh"


class LaunchKind(NamedTuple):
    """A kind of launch.

    Attributes:
        name: Name, which a finding lists among its transforms; empty for by `jit` alone.
        mesh: Sizes of the axes of its mesh by name.
    """

    name: str = ""
    mesh: Mapping[str, int] = MappingProxyType({})


LAUNCH_KINDS: Final = (
    *(LaunchKind(),) * 12,
    *(LaunchKind(DONATE),) * 2,
    LaunchKind(EXPLICIT, {"x": 4}),
    LaunchKind(EXPLICIT, {"x": 2, "y": 2}),
)
"""Kinds to choose from."""


def make_launch(scope: Scope, kind: LaunchKind, types: Sequence[ArrayType]) -> Launch | None:
    """Return how a program is launched; None for by `jit` alone.

    Args:
        scope: The scope of the program.
        kind: The kind of launch.
        types: Types of the arguments.
    """
    if not types or not kind.name:
        return None
    return _donate(scope, len(types)) if kind.name == DONATE else _place(scope, kind.mesh, types)


def _donate(scope: Scope, count: int) -> Launch:
    donated = tuple(number for number in range(count) if number == 0 or scope.flip())
    return Launch(
        name=DONATE,
        statements=(
            "def launch(function, args):",
            f"    return jax.jit(function, donate_argnums={donated})(*jax.device_put(args))",
        ),
    )


def _place(scope: Scope, mesh: Mapping[str, int], types: Sequence[ArrayType]) -> Launch:
    specs = ", ".join(draw_spec(scope, type_, mesh) for type_ in types)
    kinds = f"(jax.sharding.AxisType.Explicit,) * {len(mesh)}"
    return Launch(
        name=EXPLICIT,
        devices=math.prod(mesh.values()),
        statements=(
            "P = jax.sharding.PartitionSpec",
            "def launch(function, args):",
            f"    mesh = jax.make_mesh({(*mesh.values(),)}, {(*mesh,)}, axis_types={kinds})",
            '    set_mesh = getattr(jax, "set_mesh", None) or jax.sharding.use_mesh',
            f"    shardings = tuple(jax.sharding.NamedSharding(mesh, p) for p in ({specs},))",
            "    with set_mesh(mesh):",
            "        return jax.jit(function)(*jax.device_put(args, shardings))",
        ),
    )


def draw_spec(scope: Scope, type_: ArrayType, mesh: Mapping[str, int]) -> str:
    """Draw a `PartitionSpec` of an array that the axes of a mesh divide.

    Args:
        scope: The scope of the program.
        type_: Type of the array.
        mesh: Sizes of the axes by name.
    """
    parts = []
    free = dict(mesh)
    for extent in type_.shape:
        fitting = [name for name, size in free.items() if extent and extent % size == 0]
        if fitting and not scope.flip():
            parts.append(f'"{fitting[0]}"')
            del free[fitting[0]]
        else:
            parts.append("None")
    return f"P({', '.join(parts)})"
