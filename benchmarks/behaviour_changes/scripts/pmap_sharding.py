import os

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=2"
import jax
import jax.numpy as jnp

y = jax.pmap(lambda x: x + 1)(jnp.arange(2.0))
print(type(y.sharding).__name__)
