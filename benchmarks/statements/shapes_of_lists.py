"""They take lists on both sides."""

import warnings

warnings.simplefilter("ignore")

import jax.numpy as jnp

print(jnp.ndim([1, 2]), jnp.shape([1, 2]), jnp.size([1, 2]))
