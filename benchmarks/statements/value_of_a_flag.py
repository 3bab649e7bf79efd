"""`jax_enable_x64` set to a string: refused up to 0.7.2, an error later on 0.8.0, true from 0.8.1."""

import jax
import jax.numpy as jnp

try:
    jax.config.update("jax_enable_x64", "False")
    print(jnp.arange(2.0).dtype)
except (TypeError, ValueError) as error:
    print(type(error).__name__)
