"""`jax_enable_x64` set to None: the process ends up to 0.7.2, an error on 0.8.0, false from 0.8.1."""

import jax
import jax.numpy as jnp

jax.config.update("jax_enable_x64", None)
try:
    print(jnp.arange(2.0).dtype)
except ValueError as error:
    print(type(error).__name__)
