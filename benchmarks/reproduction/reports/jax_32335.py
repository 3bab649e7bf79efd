import jax.numpy as jnp

a = jnp.arange(6, dtype="int32").reshape(2, 3)
b = jnp.arange(4, dtype="int32").reshape(2, 2)
print(jnp.setdiff1d(a, b, assume_unique=True))
