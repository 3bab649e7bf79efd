"""The gradient of a function whose output is no scalar."""

import jax
import jax.numpy as jnp

try:
    print(jax.grad(lambda x: x * 2)(jnp.ones(3)))
except Exception as error:
    print(type(error).__name__)
