"""Sharded programs that the compiler of a release crashes on or refuses."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from conformance.kit import Observed, defaults, deviation, probe

defaults(devices=4, platforms=("cpu",))

EMPTY_ARRAY_CRASHED = deviation(
    "jax==0.11.2",
    outcome="crashed",
    reason="a segmentation fault for an empty argument among others",
)


@probe(source="jax-ml/jax#35013", deviations=[EMPTY_ARRAY_CRASHED])
def an_empty_array_among_others(env):
    """A jitted shard_map takes an empty sharded array and another array.

    On 0.11.2 alone it ends the process.
    """
    fn = env.compat.shard_map(
        lambda x, y: (2 * x, 2 * y), mesh=env.mesh(4, "x"), in_specs=P("x"), out_specs=P("x")
    )
    x, y = np.ones(8, np.float32), np.ones(0, np.float32)
    return Observed(jax.jit(fn)(x, y), (2 * x, y))


NO_REDUCTION_OF_COMPLEX_NUMBERS = deviation(
    "jax>=0.4.30",
    params=["max", "min"],
    error="XlaRuntimeError|JaxRuntimeError",
    match="Unsupported reduction computation|AllReduce for computation",
    reason="an all-reduce knows no maximum of complex numbers, which XLA computes part by part",
    issue="jax-ml/jax#16551",
)


@probe(
    source="jax-ml/jax#16551",
    params={"max": {"name": "max"}, "min": {"name": "min"}, "sum": {"name": "sum"}},
    deviations=[NO_REDUCTION_OF_COMPLEX_NUMBERS],
)
def sharded_extreme_of_complex_numbers(env, name):
    """`jnp.max` of a sharded complex array is an error of the compiler; unsharded, it works."""
    z = np.array([1 + 2j, 3, 0, 1j], np.complex64)
    sharded = jax.device_put(z, NamedSharding(env.mesh(4, "x"), P("x")))
    return Observed(jax.jit(getattr(jnp, name))(sharded), getattr(np, name)(z))
