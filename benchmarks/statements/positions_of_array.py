"""They are taken by position on both sides."""

import warnings

warnings.simplefilter("ignore")

import jax.numpy as jnp

print(jnp.array([1, 2], jnp.float32, True, "K", 2).tolist())
