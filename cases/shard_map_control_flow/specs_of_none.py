"""Arguments of shard_map that are no arrays, and constraints within a map."""

from __future__ import annotations

import jax
import numpy as np
from jax import lax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from conformance.kit import Observed, defaults, deviation, probe

defaults(devices=4, platforms=("cpu",))

ONLY_ARRAYS = deviation(
    "jax<0.4.31",
    params=["object"],
    outcome="raised",
    reason="every argument was taken for an array",
    issue="jax-ml/jax@df907117da85",
)


@probe(
    source="jax-ml/jax@df907117da85",
    params=["object", "none"],
    deviations=[ONLY_ARRAYS],
)
def argument_that_is_no_array(env, name):
    """An argument whose `in_specs` is None reaches the function of the shards as it is."""
    x, seen = np.arange(8, dtype=np.float32), []
    extra = {"object": object(), "none": None}[name]

    def shard(argument, x):
        seen.append(argument is extra)
        return 2 * x

    f = env.compat.shard_map(
        shard, mesh=env.mesh(4, "x"), in_specs=(None, P("x")), out_specs=P("x")
    )
    out = f(extra, x)
    return Observed((np.asarray(out), seen[0]), (2 * x, True))


NONE_REFUSED = deviation(
    "jax<0.7.1",
    error="TypeError",
    match="(?s)in_specs.*None",
    reason="None meant that the specs were not given",
    issue="jax-ml/jax@c975714f6cd2",
)


@probe(source="jax-ml/jax@c975714f6cd2", deviations=[NONE_REFUSED])
def none_for_all_arguments(env):
    """`in_specs=None` is a prefix for every argument, as None is for one, from 0.7.1 on."""
    f = env.compat.shard_map(lambda x: x, mesh=env.mesh(4, "x"), in_specs=None, out_specs=P())
    return Observed(np.asarray(f(3.0)), np.float32(3))


NO_RULE_FOR_CONSTRAINTS = deviation(
    "jax<0.5",
    error="NotImplementedError",
    match="No replication rule for sharding_constraint",
    reason="the check had no rule for constraints",
    issue="jax-ml/jax@b49ba6553ca2",
)


MESH_OF_THE_CALLER = deviation(
    "jax>=0.8",
    error="ValueError",
    match="should be of type `Manual`",
    reason="the type takes the mesh of the constraint, on which no axis is manual",
    issue="jax-ml/jax@9e74132a8ed5",
)


@probe(source="jax-ml/jax@b49ba6553ca2", deviations=[NO_RULE_FOR_CONSTRAINTS, MESH_OF_THE_CALLER])
def constraint_on_the_automatic_axis(env):
    """With the check on, a map over one axis constrains its shards over the other axis.

    From 0.8.0 on a `NamedSharding` on the mesh of the caller is refused.
    """
    mesh, x = env.mesh((2, 2), ("x", "y")), np.arange(16, dtype=np.float32).reshape(4, 4)

    def shard(x):
        return lax.with_sharding_constraint(x, NamedSharding(mesh, P(None, "y")))

    f = env.compat.shard_map(shard, mesh=mesh, in_specs=P("x"), out_specs=P("x"), axis_names={"x"})
    return Observed(np.asarray(jax.jit(f)(x)), x)
