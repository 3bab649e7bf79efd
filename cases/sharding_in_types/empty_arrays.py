"""Arrays without elements keep their shardings, in the type and on the devices."""

from __future__ import annotations

import jax
import numpy as np
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from conformance.kit import Observed, deviation, probe

SHARDS = 4


def run_sharded(env, how, x):
    """Add 1 to an array of rows, in shards along `x`, and return the result.

    Args:
        env: Environment of the case.
        how: One of the parameters of `rows`.
        x: Array with two dimensions, possibly empty.
    """
    mesh = env.mesh(SHARDS, "x")
    rows = NamedSharding(mesh, P("x"))
    add = lambda x: x + 1  # noqa: E731 - short
    mapped = env.compat.shard_map(add, mesh=mesh, in_specs=P("x"), out_specs=P("x"))
    if how == "out_shardings":
        return jax.jit(add, out_shardings=rows)(x)
    if how == "constraint":
        return jax.jit(lambda x: jax.lax.with_sharding_constraint(x + 1, rows))(x)
    return (jax.jit(mapped) if how == "shard_map_under_jit" else mapped)(x)


XLA_REPLICATED_OUTPUT = deviation(
    "jax>=0.7,<0.9.1",
    params=["shard_map", "out_shardings"],
    error="AssertionError",
    match="Unexpected XLA sharding override",
    reason="XLA replicated the empty result, which the check of output shardings refused",
    issue="jax-ml/jax#35013",
)
REPLICATED_UNDER_JIT = deviation(
    "jax>=0.7,<0.11.2",
    params=["shard_map_under_jit"],
    outcome="ok",
    reason="XLA replicated the empty result",
    issue="jax-ml/jax#35013",
)
CONSTRAINT_DROPPED = deviation(
    "jax>=0.7",
    params=["constraint"],
    outcome="ok",
    reason="XLA replicated the empty result",
    issue="jax-ml/jax#35013",
)


@probe(
    source="jax-ml/jax#35013",
    devices=4,
    platforms=("cpu",),
    params={
        "shard_map": {"how": "shard_map"},
        "shard_map_under_jit": {"how": "shard_map_under_jit"},
        "out_shardings": {"how": "out_shardings"},
        "constraint": {"how": "constraint"},
    },
    deviations=[XLA_REPLICATED_OUTPUT, REPLICATED_UNDER_JIT, CONSTRAINT_DROPPED],
)
def empty_rows(env, how):
    """A batch of no rows goes through a sharded step as a batch of eight does.

    From 0.7.0 to 0.9.0.1, `shard_map` without `jit`, and `out_shardings`, raise an AssertionError.
    """
    results = [run_sharded(env, how, np.zeros((n, 3), np.float32)) for n in (8, 0)]
    rows = NamedSharding(env.mesh(SHARDS, "x"), P("x"))
    return Observed(
        [(x.shape, x.sharding.is_equivalent_to(rows, x.ndim)) for x in results],
        [((n, 3), True) for n in (8, 0)],
    )
