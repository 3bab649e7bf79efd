"""A function as a result under jit."""

import jax
import jax.numpy as jnp

try:
    print(jax.jit(lambda x: (2.0, jnp.sin))(1))
except Exception as error:
    print(type(error).__name__)
