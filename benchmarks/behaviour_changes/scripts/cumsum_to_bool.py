import jax.numpy as jnp

x = jnp.array([2, 0, -2, 4])
print(jnp.cumsum(x, dtype=bool))
