import os

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=2"
import jax
import jax.numpy as jnp
from jax.experimental.shard_map import shard_map
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P

mesh = Mesh(jax.devices()[:2], ("x",))


def halve(x):
    return jax.lax.while_loop(lambda v: jnp.max(v) > 1.0, lambda v: v / 2, x)


f = jax.jit(shard_map(halve, mesh=mesh, in_specs=P("x"), out_specs=P("x")))
print(f(jnp.array([8.0, 3.0])))
