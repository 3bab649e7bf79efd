"""`bincount` of what is below zero or beyond its length."""

import jax
import jax.numpy as jnp

x = jnp.array([0, 1, 1, 5, -1])
print(jnp.bincount(x, length=3).tolist(), jnp.bincount(x, jnp.arange(5.0), length=3).tolist())
print(jax.jit(lambda x: jnp.bincount(x, length=4))(x).tolist())
