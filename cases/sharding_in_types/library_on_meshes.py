"""Functions that map, reshard or constrain arrays on a mesh, and how often they are traced."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from conformance.kit import Observed, defaults, deviation, probe
from conformance.kit.endings import refusal

from ._helpers import format_spec, numbers, put, reshard

defaults(devices=4, platforms=("cpu",), releases="jax>=0.6")


REMAINDER_REFUSED = deviation(
    "jax<0.6.2",
    error="ShardingTypeError",
    match="out_sharding",
    reason="the remainder was selected by an indexing that was refused",
    issue="jax-ml/jax@e20b3a4e34f2",
)


@probe(source="jax-ml/jax@e20b3a4e34f2", deviations=[REMAINDER_REFUSED])
def batches_with_a_remainder(env):
    """On Explicit axes, `lax.map` with a `batch_size` that leaves a remainder."""
    mesh, x = env.mesh(4, "x", explicit=True), numbers(5, 4)
    with env.compat.set_mesh(mesh):
        out = lax.map(lambda row: 2 * row, put(mesh, x, None, "x"), batch_size=2)
    expected = {"spec": "[None, 'x']", "value": 2 * x}
    return Observed({"spec": format_spec(out), "value": out}, expected)


KEYS_WITHOUT_WORDS = deviation(
    "jax<0.7",
    outcome="raised",
    reason="the sharding was not extended to the words of the keys",
    issue="jax-ml/jax@5371d6b765a8",
)


@probe(source="jax-ml/jax@5371d6b765a8", deviations=[KEYS_WITHOUT_WORDS])
def resharded_keys(env):
    """On Explicit axes, `reshard` of typed keys shards them."""
    mesh, keys = env.mesh(4, "x", explicit=True), jax.random.split(jax.random.key(0), 4)
    with env.compat.set_mesh(mesh):
        out = reshard(keys, P("x"))
    words = np.asarray(jax.random.key_data(keys))
    return Observed((format_spec(out), np.asarray(jax.random.key_data(out))), ("['x']", words))


TRACED_TWICE = deviation(
    "jax>=0.5.1,<0.7",
    outcome="ok",
    reason="the type after the constraint had no mesh, that of the argument had one",
    issue="jax-ml/jax@bd32431a6751",
)


@probe(source="jax-ml/jax@bd32431a6751", releases="jax", deviations=[TRACED_TWICE])
def traced_once_for_both(env):
    """A constrained array and an argument with the same sharding share the trace of a function.

    From 0.5.1 to 0.6.2 the function is traced for each.
    """
    rows = NamedSharding(env.mesh(4, "x"), P("x"))
    x, traces = numbers(4, 2), []

    @jax.jit
    def inner(x):
        traces.append(x.shape)
        return 2 * x

    zeros = jnp.asarray(x)
    jax.jit(lambda: inner(lax.with_sharding_constraint(zeros, rows)))()
    jax.jit(lambda x: inner(x) + 1)(jax.device_put(x, rows))
    return Observed(len(traces), 1)


SPECS_OF_ONE_AXIS_MOVED_THE_ARRAY = deviation(
    "jax<0.12",
    outcome="ok",
    reason="in_specs were compared with shardings only where all mesh axes were manual",
)


@probe(
    source="jax-ml/jax#31799", releases="jax>=0.9.1", deviations=[SPECS_OF_ONE_AXIS_MOVED_THE_ARRAY]
)
def gathering_along_one_manual_axis(env):
    """`in_specs=P()` of a shard_map over one of two Explicit axes, for an array sharded over it."""
    explicit = (jax.sharding.AxisType.Explicit,) * 2
    mesh = jax.make_mesh((2, 2), ("x", "y"), explicit, devices=env.devices[:4])
    double = jax.shard_map(
        lambda x: 2 * x, mesh=mesh, in_specs=P(), out_specs=P(), axis_names={"x"}
    )
    with jax.set_mesh(mesh):
        outcome = refusal(
            lambda: jax.jit(double)(put(mesh, numbers(4, 2), "x", "y")), "does not match the specs"
        )
    return Observed(outcome, reference="ValueError: does not match the specs")
