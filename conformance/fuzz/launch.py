"""How a program is launched: by `jit` alone, with donated arguments, or on an Explicit mesh."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from conformance.fuzz.array_type import ArrayType
    from conformance.fuzz.scope import Scope

RATE: Final = 8
"""One program of so many has each kind of launch."""
MESHES: Final[tuple[Mapping[str, int], ...]] = ({"x": 4}, {"x": 2, "y": 2})
"""Sizes of the axes of the meshes to choose from."""


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


def draw_launch(scope: Scope, types: Sequence[ArrayType], *, meshes: bool) -> Launch | None:
    """Draw how a program is launched; None for by `jit` alone.

    Args:
        scope: The scope of the program.
        types: Types of the arguments.
        meshes: Whether it may have a mesh, i.e. the program has none of its own.
    """
    # One draw decides, so that a program without a launch is the simpler one for Hypothesis.
    kind = scope.integer(0, RATE - 1) if types else 0
    if kind == RATE - 1:
        return _donate(scope, len(types))
    if kind == RATE - 2 and meshes:
        return _place(scope, types)
    return None


def _donate(scope: Scope, count: int) -> Launch:
    donated = tuple(number for number in range(count) if number == 0 or scope.flip())
    return Launch(
        name="donate",
        statements=(
            "def launch(function, args):",
            f"    return jax.jit(function, donate_argnums={donated})(*jax.device_put(args))",
        ),
    )


def _place(scope: Scope, types: Sequence[ArrayType]) -> Launch:
    mesh = scope.choose(MESHES)
    specs = ", ".join(draw_spec(scope, type_, mesh) for type_ in types)
    kinds = f"(jax.sharding.AxisType.Explicit,) * {len(mesh)}"
    return Launch(
        name="explicit mesh",
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
