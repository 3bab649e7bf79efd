"""Reductions by the functions that exist on both sides."""

import jax.numpy as jnp
from jax import lax

x = jnp.array([[3.0, 1, 2], [6, 5, 4]])
print(lax.reduce(x, 0.0, lax.add, (0,)).tolist(), lax.reduce(x, 1.0, lax.mul, (1,)).tolist())
print(lax.reduce(x, -jnp.inf, lax.max, (0, 1)), lax.argmax(x, 1, jnp.int32).tolist())
print(lax.reduce(x > 2, True, lax.bitwise_and, (1,)).tolist(), lax.cumsum(x, 1).tolist())
print(lax.reduce_precision(x / 3, 5, 4).tolist())
