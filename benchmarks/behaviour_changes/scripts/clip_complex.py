import jax.numpy as jnp

z = jnp.array([1 + 2j, 3 - 1j])
print(jnp.clip(z, 0, 2))
