"""`jnp.insert` of a shard, with the check of shard_map on."""

import os

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=2"

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, PartitionSpec

try:
    from jax import shard_map
except ImportError:
    from jax.experimental.shard_map import shard_map

mesh = Mesh(np.array(jax.devices()), "x")
spec = PartitionSpec("x")
insert = shard_map(lambda x: jnp.insert(x, 0, 0), mesh=mesh, in_specs=spec, out_specs=spec)
try:
    print(jax.jit(insert)(jnp.arange(1, 5)))
except TypeError as error:
    print(error)
