"""The jobs that are timed: small sharded programs, as most cases are."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import PartitionSpec as P

from conformance.kit import Program, program


@program(
    devices=4,
    params={
        "p0": {"scale": 1.0},
        "p1": {"scale": 2.0},
        "p2": {"scale": 3.0},
        "p3": {"scale": 4.0},
        "p4": {"scale": 5.0},
        "p5": {"scale": 6.0},
        "p6": {"scale": 7.0},
        "p7": {"scale": 8.0},
    },
)
def psum(env, scale):
    """A psum under shard_map, with another constant each time."""
    mesh = env.mesh(4, "x")
    step = env.compat.shard_map(
        lambda x: jax.lax.psum(jnp.sin(x) * scale, "x"),
        mesh=mesh,
        in_specs=P("x"),
        out_specs=P(),
    )
    u = np.linspace(0, 1, 16, dtype=np.float32)
    return Program(step, args=(u,), reference=lambda x: scale * np.sin(x).reshape(4, 4).sum(0))
