"""`tan` and its derivative, real and complex."""

import jax
import jax.numpy as jnp

print(jnp.tan(jnp.array([0.1, 1.0, 1.5, 1.5707, 3.0, 10.0, 1e3, -2.0])).tolist())
print(jax.grad(jnp.tan)(1.0), jnp.tan(jnp.array([1 + 2j, 0.3 - 1j])).tolist())
