"""Programs that are traced or lowered for a mesh without devices, and arrays like their shapes."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from conformance.kit import Observed, defaults, deviation, probe
from conformance.kit.endings import refusal

defaults(devices=2, platforms=("cpu",))


def find_partitions(f, *structs):
    """Return the number of partitions of a function that is lowered for a CPU."""
    text = jax.jit(f).trace(*structs).lower(lowering_platforms=("cpu",)).as_text()
    return text.split("mhlo.num_partitions = ")[1].split(" ")[0]


def rows(mesh, axis):
    """Return the shape of an array whose rows are sharded over an axis of a mesh."""
    return jax.ShapeDtypeStruct((8, 2), np.float32, sharding=NamedSharding(mesh, P(axis)))


ONLY_WITH_DEVICES = deviation(
    "jax<0.4.38",
    params=["one_mesh"],
    error="ValueError",
    match="not implemented for `jax.sharding.AbstractMesh`",
    reason="a program could be lowered for devices only",
    issue="jax-ml/jax@d0f63da4b530",
)
TWO_NAMES = deviation(
    "jax<0.8",
    params=["two_names"],
    error="ValueError",
    match="AbstractMesh",
    reason="the abstract meshes had to be equal",
    issue="jax-ml/jax@f528819235bb",
)


@probe(
    source="jax-ml/jax@d0f63da4b530",
    releases="jax>=0.4.33",
    params={"one_mesh": {"other": "x"}, "two_names": {"other": "y"}},
    deviations=[ONLY_WITH_DEVICES, TWO_NAMES],
)
def lowered_for_abstract_meshes(env, other):
    """A program is lowered for shapes on abstract meshes, whose axes may have two names."""
    meshes = [env.mesh(2, name).abstract_mesh for name in ("x", other)]
    first, second = (rows(mesh, name) for mesh, name in zip(meshes, ("x", other), strict=True))
    return Observed(find_partitions(lambda a, b: a * b, first, second), "2")


NO_MESH_IN_THE_TYPE = deviation(
    "jax<0.10",
    error="ValueError",
    match="Length of device assignment 1 is not equal to the size of the mesh 2",
    reason="a context of an abstract mesh needed that of a mesh of devices around it",
    issue="jax-ml/jax@41935d8ca0ce",
)


@probe(source="jax-ml/jax@41935d8ca0ce", releases="jax>=0.7.2", deviations=[NO_MESH_IN_THE_TYPE])
def lowered_in_the_context_of_an_abstract_mesh(env):
    """`jax.sharding.use_abstract_mesh` alone lowers a program for the size of its mesh."""
    with jax.sharding.use_abstract_mesh(env.mesh(2, "x", explicit=True).abstract_mesh):
        observed = find_partitions(lambda x: 2 * x, jax.ShapeDtypeStruct((8, 2), np.float32))
    return Observed(observed, "2")


STRUCT_NOT_SHARDED = deviation(
    "jax>=0.6.2,<0.7.1",
    outcome="ok",
    reason="the sharding of a shape on an abstract mesh was ignored",
    issue="jax-ml/jax@680a80c3490c",
)


@probe(source="jax-ml/jax@680a80c3490c", releases="jax>=0.6.1", deviations=[STRUCT_NOT_SHARDED])
def zeros_like_a_shape(env):
    """`jnp.zeros_like` of a shape on an Explicit abstract mesh is sharded as the shape says."""
    mesh = env.mesh(2, "x", explicit=True)
    with env.compat.set_mesh(mesh):
        out = jnp.zeros_like(rows(mesh.abstract_mesh, "x"))
    return Observed([list(shard.data.shape) for shard in out.addressable_shards], [[4, 2]] * 2)


ABSTRACT_AXES_REFUSED = deviation(
    "jax<0.6.2",
    outcome="raised",
    reason="the zeros were to have a sharding that has no devices",
    issue="jax-ml/jax@002078b3184a",
)


@probe(source="jax-ml/jax@002078b3184a", releases="jax>=0.4.38", deviations=[ABSTRACT_AXES_REFUSED])
def full_like_an_abstract_shape(env):
    """`lax.full_like` of a shape on an abstract mesh of Auto axes is on the default device."""
    out = lax.full_like(rows(env.mesh(2, "x").abstract_mesh, "x"), 3)
    return Observed((out, len(out.devices())), (np.full((8, 2), 3, np.float32), 1))


TEXT_ACCEPTED = deviation(
    "jax<0.6",
    outcome="ok",
    reason="the types of axes were not checked",
    issue="jax-ml/jax@cccc34dc2334",
)


@probe(source="jax-ml/jax@cccc34dc2334", releases="jax>=0.5.3", deviations=[TEXT_ACCEPTED])
def axis_types_as_text(env):
    """`axis_types=("explicit",)` is a TypeError, as it names no `AxisType`."""

    def make():
        return jax.sharding.AbstractMesh((2,), ("x",), axis_types=("explicit",))

    return Observed(refusal(make, "axis_types"), "TypeError: axis_types")


TWO_CONTEXTS_REFUSED = deviation(
    "jax>=0.5.1,<0.5.3",
    error="ValueError",
    match="together is not allowed",
    reason="the two contexts were refused together",
    issue="jax-ml/jax@1dc58b79bfca",
)


@probe(
    source="jax-ml/jax@1dc58b79bfca",
    releases="jax>=0.5",
    params={"same_mesh": {"axis": "x"}, "another_mesh": {"axis": "y"}},
    deviations=[TWO_CONTEXTS_REFUSED],
)
def two_kinds_of_context(env, axis):
    """`with mesh:` within `jax.sharding.use_mesh` or `jax.set_mesh` runs a jitted function."""
    with env.compat.set_mesh(env.mesh(2, "x")), env.mesh(2, axis):
        out = jax.jit(lambda x: 2 * x)(np.ones(4, np.float32))
    return Observed(out, np.full(4, 2, np.float32))


RESULT_WITHOUT_DEVICES = deviation(
    "jax<0.11",
    error="ValueError",
    match="not implemented for `jax.sharding.AbstractMesh`",
    reason="the result kept the abstract mesh",
    issue="jax-ml/jax@d5bc1dd9cfbf",
)


@probe(
    source="jax-ml/jax@d5bc1dd9cfbf",
    devices=1,
    releases="jax>=0.10.1",
    deviations=[RESULT_WITHOUT_DEVICES],
)
def compiled_for_one_device(env):
    """A program traced on an abstract mesh of one device, then compiled for it, gives arrays."""
    device = jax.sharding.AbstractDevice("cpu", 1, "cpu")
    kind = (jax.sharding.AxisType.Explicit,)
    mesh = jax.sharding.AbstractMesh((1,), ("x",), kind, abstract_device=device)
    with jax.sharding.use_abstract_mesh(mesh):
        lowered = jax.jit(lambda x: 2 * x).trace(jax.ShapeDtypeStruct((4,), np.float32)).lower()
    x = np.arange(4, dtype=np.float32)
    out = lowered.compile(device_assignment=tuple(env.devices))(x)
    return Observed(np.asarray(out + 1), 2 * x + 1)


AXES_DROPPED = deviation(
    "jax<0.10.2",
    outcome="ok",
    reason="the sharding of a shape counted only if it had devices",
    issue="jax-ml/jax@f2c46883772c",
)


@probe(source="jax-ml/jax@f2c46883772c", releases="jax>=0.8.2", deviations=[AXES_DROPPED])
def zeros_like_a_shape_from_outside(env):
    """Under jit, `jnp.zeros_like` of a shape on an abstract Explicit mesh is sharded as the shape.

    The function closes over the shape.
    """
    mesh = env.mesh(2, "x", explicit=True).abstract_mesh
    with jax.sharding.use_abstract_mesh(mesh):
        shape = rows(mesh, "x")
        info = jax.jit(lambda: jnp.zeros_like(shape)).trace().out_info
    return Observed(str([*info.sharding.spec]), "['x', None]")
