"""Arrays that the function of a shard_map closes over, in the context of a mesh."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import PartitionSpec as P

from conformance.kit import Observed, defaults, deviation, probe

defaults(devices=4, platforms=("cpu",))

AUTO_WITHIN_MANUAL = deviation(
    "jax>=0.5,<0.5.1",
    outcome="raised",
    reason="the array had a mesh with Auto axes in its type, and the shards one with Manual axes",
    issue="jax-ml/jax@9107ee4a2226",
)


@probe(
    source="jax-ml/jax@9107ee4a2226",
    params={
        "eager": {"jit": False, "axes": None},
        "jit": {"jit": True, "axes": None},
        "jit_one_axis": {"jit": True, "axes": ["x"]},
    },
    deviations=[AUTO_WITHIN_MANUAL],
)
def array_from_outside(env, jit, axes):
    """In the context of a mesh, each shard reads an array from outside; in 0.5.0 it fails."""
    mesh, constant = env.mesh((2, 2), ("x", "y")), jnp.asarray(np.arange(4, dtype=np.float32))
    with env.compat.set_mesh(mesh):
        f = env.compat.shard_map(
            lambda: 2 * constant, mesh=mesh, in_specs=(), out_specs=P("x"), axis_names=axes
        )
        out = (jax.jit(f) if jit else f)()
    return Observed(np.asarray(out), np.tile(2 * np.arange(4, dtype=np.float32), 2))


MESH_WITHIN_MANUAL = deviation(
    "jax>=0.9.1",
    error="ValueError",
    match="Context mesh .* should match",
    reason="the mesh of the array has Auto axes, and the context of the shard Manual axes",
)


@probe(
    source="jax-ml/jax@cf879e1ba02d",
    params={"eager": {"jit": False}, "jit": {"jit": True}},
    deviations=[MESH_WITHIN_MANUAL],
)
def slice_of_a_sharded_array(env, jit):
    """A slice `a[:2]`, in each shard, of a sharded array from outside: a ValueError from 0.9.1."""
    mesh, x = env.mesh(4, "x"), np.arange(8, dtype=np.float32)
    a = jax.device_put(x, jax.sharding.NamedSharding(mesh, P("x")))
    f = env.compat.shard_map(lambda x: x + a[:2], mesh=mesh, in_specs=P("x"), out_specs=P("x"))
    return Observed((jax.jit(f) if jit else f)(x), x + np.tile(x[:2], 4))
