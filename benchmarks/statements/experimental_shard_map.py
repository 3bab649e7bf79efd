"""The experimental shard_map works on both sides."""

import warnings

warnings.simplefilter("ignore")

import jax
import jax.numpy as jnp
from jax.experimental.shard_map import shard_map
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((1,), ("i",))
f = shard_map(lambda x: jax.lax.psum(x, "i"), mesh=mesh, in_specs=P("i"), out_specs=P())
print(f(jnp.arange(2.0)).tolist())
