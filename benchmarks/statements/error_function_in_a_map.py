"""`erf` in shard_map."""

import os

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental.shard_map import shard_map
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P

mesh = Mesh(np.array(jax.devices()), ("i",))
print(shard_map(jax.lax.erf, mesh=mesh, in_specs=P("i"), out_specs=P("i"))(jnp.arange(4.0)))
