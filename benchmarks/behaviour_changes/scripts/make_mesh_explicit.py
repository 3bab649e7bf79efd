import os

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"
import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4,), ("data",))
x = jax.device_put(jnp.ones((4, 8)), NamedSharding(mesh, P("data", None)))
w = jax.device_put(jnp.ones((4, 8)), NamedSharding(mesh, P("data", None)))
print(float(jax.jit(lambda x, w: (x.T @ w).sum())(x, w)))
