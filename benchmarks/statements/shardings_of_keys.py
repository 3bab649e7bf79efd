"""Keys with `out_shardings`, and their data."""

import os

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = Mesh(np.array(jax.devices()).reshape(2, 2), ("x", "y"))
sharding = NamedSharding(mesh, P(None, "y", "x"))
split = lambda: jax.random.split(jax.random.key(0), (2, 4, 2))
keys = jax.jit(split, out_shardings=sharding)()
keys = jax.jit(lambda k: k, in_shardings=sharding, out_shardings=sharding)(keys)
data = jax.random.key_data(keys)
print(tuple(keys.sharding.spec), tuple(data.sharding.spec), data.shape, data.ravel()[:2].tolist())
print([shard.data.shape for shard in keys.addressable_shards])
