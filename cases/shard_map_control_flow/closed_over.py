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
