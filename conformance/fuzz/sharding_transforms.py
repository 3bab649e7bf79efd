"""Transforms with a mesh of devices, and export."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from conformance.fuzz.launch import draw_spec
from conformance.fuzz.program import Transform
from conformance.fuzz.transform import TransformFrame

if TYPE_CHECKING:
    from conformance.fuzz.array_type import ArrayType
    from conformance.fuzz.scope import Scope
    from conformance.fuzz.transform import Types

MESH: Final = "mesh{0} = jax.sharding.Mesh(np.array(jax.devices()[:{1}]).reshape({2}), ({3}))"
SHARD_MAP: Final = (
    "try:",
    "    from jax import shard_map",
    "except ImportError:",
    "    from jax.experimental.shard_map import shard_map",
    "import inspect",
    'CHECK = {{"check_vma", "check_rep"}} & {{*inspect.signature(shard_map).parameters}}',
)
"""Where `shard_map` and its check are, which releases name differently."""


def make_mesh_frame(scope: Scope, number: int) -> TransformFrame:
    """Draw a mesh of one or two axes."""
    sizes = scope.choose([(4,), (2, 2)])
    return TransformFrame(
        number=number, mesh={f"{'xy'[at]}{number}": size for at, size in enumerate(sizes)}
    )


def make_shard_map_frame(scope: Scope, number: int) -> TransformFrame:
    """Draw a mesh whose axes collectives may use."""
    frame = make_mesh_frame(scope, number)
    return replace(frame, axes=frame.mesh)


def _write_mesh(frame: TransformFrame) -> str:
    names = ", ".join(f'"{name}"' for name in frame.mesh) + ","
    shape = tuple(frame.mesh.values())
    return MESH.format(frame.number, frame.devices, shape, names)


Layout = tuple[tuple[str, ...], ...]
"""Names of the axes of a mesh that divide each of the leading dimensions."""


def _list_layouts(frame: TransformFrame) -> list[Layout]:
    """Return the layouts of shards to choose from, the simplest first."""
    names = [*frame.mesh]
    layouts: list[Layout] = [((name,),) for name in names]
    return layouts if len(names) == 1 else [*layouts, (tuple(names),), tuple((n,) for n in names)]


def _write_spec(layout: Layout) -> str:
    parts = [f'"{names[0]}"' if len(names) == 1 else str(names).replace("'", '"')
             for names in layout]  # fmt: skip
    return f"P({', '.join(parts)})"


def _join_shards(type_: ArrayType, layout: Layout, frame: TransformFrame) -> ArrayType:
    """Return the type of an array whose shards have a type."""
    sizes = [math.prod(frame.mesh[name] for name in names) for names in layout]
    leading = [size * extent for size, extent in zip(sizes, type_.shape, strict=False)]
    return type_.with_shape(*leading, *type_.shape[len(sizes) :])


def apply_shard_map(
    scope: Scope, frame: TransformFrame, types: Types, results: Types
) -> Transform | None:
    """Map a function over the shards of one or two axes, with or without the check."""
    if not types:
        return None
    layout = scope.choose(_list_layouts(frame))
    specs, outer = [], []
    for type_ in types:
        if type_.rank >= len(layout) and not scope.rarely(4):
            specs.append(_write_spec(layout))
            outer.append(_join_shards(type_, layout, frame))
        else:
            specs.append("P()")
            outer.append(type_)
    rank = len(layout)
    ranked_results = [type_.with_shape(*type_.shape, *(1,) * (rank - type_.rank))
                      for type_ in results]  # fmt: skip
    made = tuple(_join_shards(type_, layout, frame) for type_ in ranked_results)
    # Each result differs between the shards of the axes in its layout; those of another axis are
    # equal, which the check cannot know if a collective or an index of it was used.
    whole = {name for names in layout for name in names} == {*frame.mesh}
    check = "" if whole and scope.flip() else ", **dict.fromkeys(CHECK, False)"
    statements = (
        *(line.format() for line in SHARD_MAP), "P = jax.sharding.PartitionSpec",
        _write_mesh(frame),
    )  # fmt: skip
    reshape = f"lambda y: jnp.reshape(y, jnp.shape(y) + (1,) * ({rank} - jnp.ndim(y)))"
    ranked = f"lambda *a: jax.tree.map({reshape}, {{f}}(*a))"
    code = (
        f"shard_map({ranked}, mesh=mesh{frame.number}, in_specs=({', '.join(specs)},), "
        f"out_specs={_write_spec(layout)}{check})"
    )
    return Transform(
        name="shard_map", code=code, statements=statements, types=tuple(outer), results=made
    )


def apply_sharded_jit(
    scope: Scope, frame: TransformFrame, types: Types, results: Types
) -> Transform | None:
    """Compile a function with shardings of its arguments, and maybe of its results."""
    if not types:
        return None
    specs = [f"S(mesh{frame.number}, {draw_spec(scope, type_, frame.mesh)})" for type_ in types]
    statements = ("P, S = jax.sharding.PartitionSpec, jax.sharding.NamedSharding",
                  _write_mesh(frame))  # fmt: skip
    out = scope.choose(["", f", out_shardings=S(mesh{frame.number}, P())"])
    code = f"jax.jit({{f}}, in_shardings=({', '.join(specs)},){out})"
    return Transform(
        name="jit(shardings)", code=code, statements=statements, twin="{f}", types=types,
        results=results,
    )  # fmt: skip


EXPORT: Final = (
    "def export_and_load(f):",
    "    def call(*a):",
    "        exported = jax.export.export(jax.jit(f))(*a)",
    "        return jax.export.deserialize(exported.serialize()).call(*a)",
    "    return call",
)


def apply_export(_: Scope, __: TransformFrame, types: Types, results: Types) -> Transform:
    """Export a function, serialize it, load it again and call it."""
    return Transform(
        name="export", code="export_and_load({f})", statements=("import jax.export", *EXPORT),
        twin="{f}", types=types, results=results,
    )  # fmt: skip
