import jax.numpy as jnp

velocity = jnp.array([1.0, 2.0])
force = jnp.array([3.0, 5.0])
print(jnp.cross(velocity, force))
