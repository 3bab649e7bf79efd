"""A slice whose ends are traced."""

import jax
import jax.numpy as jnp

try:
    print(jax.jit(lambda x, i: x[i : i + 2])(jnp.ones(5), 1))
except Exception as error:
    print(type(error).__name__)
