"""Tridiagonal systems, one of them singular, solved without the option."""

import jax.numpy as jnp
from jax.lax.linalg import tridiagonal_solve

lower, diagonal, upper = (jnp.array(v) for v in ([0.0, 1, 2], [4.0, 5, 6], [1.0, 1, 0]))
b = jnp.arange(6.0).reshape(3, 2)
print(tridiagonal_solve(lower, diagonal, upper, b).round(4).tolist())
print(tridiagonal_solve(lower * 0, diagonal * 0, upper * 0, b).tolist())
