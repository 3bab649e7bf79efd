"""The flag can be set on both sides."""

import warnings

warnings.simplefilter("ignore")

import jax
import jax.numpy as jnp

jax.config.update("jax_pmap_no_rank_reduction", False)
print(jax.pmap(lambda x: x + 1)(jnp.arange(1)).tolist())
