"""Repeated rows and the gradient of a pooling, in the context of a mesh with Explicit axes.

The values are those of NumPy, and the sharding is that of the argument.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from conformance.kit import Observed, defaults, deviation, probe

from ._helpers import SHARDS, format_spec, numbers, put

defaults(devices=4, platforms=("cpu",), releases="jax>=0.6")

NO_RULE_FOR_SCATTER = deviation(
    "jax<0.6.1",
    error="ShardingTypeError",
    match="sharding rule for scatter is not implemented",
    reason="the positions of the rows are computed by a scatter, which had no rule",
    issue="jax-ml/jax@93d02349aab1",
)


@probe(source="jax-ml/jax@93d02349aab1", deviations=[NO_RULE_FOR_SCATTER])
def rows_repeated_by_counts(env):
    """`jnp.repeat` of an unsharded array by an array of counts."""
    x, counts = numbers(3, 2), np.array([2, 0, 1])
    with env.compat.set_mesh(env.mesh(SHARDS, "x", explicit=True)):
        out = jnp.repeat(x, counts, axis=0)
    return Observed(
        {"spec": format_spec(out), "value": out},
        {"spec": "[]", "value": np.repeat(x, counts, axis=0)},
    )


NO_RULE_FOR_THE_GRADIENT = deviation(
    "jax<0.6.1",
    error="ShardingTypeError",
    match="sharding rule for select_and_scatter_add is not implemented",
    reason="the primitive of the gradient had no rule for shardings",
    issue="jax-ml/jax@1c3f4faedd1f",
)


@probe(source="jax-ml/jax@1c3f4faedd1f", deviations=[NO_RULE_FOR_THE_GRADIENT])
def gradient_of_a_pooling(env):
    """The gradient of a maximum over windows along an unsharded axis stays in rows."""
    mesh, x = env.mesh(SHARDS, "x", explicit=True), numbers(4, 4)

    def pool(x):
        return lax.reduce_window(x, -np.inf, lax.max, (1, 2), (1, 2), "VALID").sum()

    with env.compat.set_mesh(mesh):
        out = jax.jit(jax.grad(pool))(put(mesh, x, "x"))
    return Observed(
        {"spec": format_spec(out), "value": out},
        {"spec": "['x']", "value": np.tile(np.array([0, 1], np.float32), (4, 2))},
    )
