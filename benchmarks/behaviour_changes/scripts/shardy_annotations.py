import os

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=2"
import jax
import jax.numpy as jnp
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = Mesh(jax.devices()[:2], ("x",))
sharded = NamedSharding(mesh, P("x"))
text = jax.jit(jnp.sin, in_shardings=sharded).lower(jnp.ones(4)).as_text()
print("mhlo.sharding" in text, "sdy.sharding" in text)
