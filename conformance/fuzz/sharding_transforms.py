"""Transforms with a mesh of devices, and export."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from conformance.fuzz.program import Transform
from conformance.fuzz.transform import TransformFrame

if TYPE_CHECKING:
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


def apply_shard_map(
    scope: Scope, frame: TransformFrame, types: Types, results: Types
) -> Transform | None:
    """Map a function over the shards of one axis, with or without the check."""
    if not types:
        return None
    name = scope.choose([*frame.mesh])
    size = frame.mesh[name]
    specs, outer = [], []
    for type_ in types:
        if type_.rank and not scope.rarely(4):
            specs.append(f'P("{name}")')
            outer.append(type_.with_shape(size * type_.shape[0], *type_.shape[1:]))
        else:
            specs.append("P()")
            outer.append(type_)
    made = tuple(
        type_.with_shape(size * (type_.shape[0] if type_.rank else 1), *type_.shape[1:])
        for type_ in results
    )
    # Each result differs between the shards of this axis; those of the other axis are equal, which
    # the check cannot know if a collective or an index of it was used.
    check = "" if len(frame.mesh) == 1 and scope.flip() else ", **dict.fromkeys(CHECK, False)"
    statements = (
        *(line.format() for line in SHARD_MAP), "P = jax.sharding.PartitionSpec",
        _write_mesh(frame),
    )  # fmt: skip
    ranked = "lambda *a: jax.tree.map(jnp.atleast_1d, {f}(*a))"
    code = (
        f"shard_map({ranked}, mesh=mesh{frame.number}, in_specs=({', '.join(specs)},), "
        f'out_specs=P("{name}"){check})'
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
    specs = []
    for type_ in types:
        parts = []
        free = dict(frame.mesh)
        for extent in type_.shape:
            fitting = [name for name, size in free.items() if extent and extent % size == 0]
            if fitting and not scope.flip():
                parts.append(f'"{fitting[0]}"')
                del free[fitting[0]]
            else:
                parts.append("None")
        specs.append(f"S(mesh{frame.number}, P({', '.join(parts)}))")
    statements = ("P, S = jax.sharding.PartitionSpec, jax.sharding.NamedSharding",
                  _write_mesh(frame))  # fmt: skip
    out = scope.choose(["", f", out_shardings=S(mesh{frame.number}, P())"])
    code = f"jax.jit({{f}}, in_shardings=({', '.join(specs)},){out})"
    return Transform(
        name="jit(shardings)", code=code, statements=statements, types=types, results=results
    )


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
        types=types, results=results,
    )  # fmt: skip
