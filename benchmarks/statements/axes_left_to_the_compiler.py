"""The experimental shard_map takes `auto=` up to 0.7.2."""

import warnings

warnings.simplefilter("ignore")

import os

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"

import jax
import jax.numpy as jnp
from jax.experimental.shard_map import shard_map
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((2, 2), ("a", "b"))
f = lambda x: jax.lax.psum(x, "a")
try:
    f = shard_map(f, mesh=mesh, in_specs=P("a"), out_specs=P(), auto=frozenset({"b"}))
    print(jax.jit(f)(jnp.arange(4.0)).tolist())
except TypeError as error:
    print(type(error).__name__)
