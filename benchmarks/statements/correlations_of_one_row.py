"""The correlations of one row whose columns are the variables."""

import jax.numpy as jnp

print(jnp.corrcoef(jnp.array([[0.0, 1.0, 2.0, 3.0]]), rowvar=False))
