"""An empty reference as a result is an `AssertionError` up to 0.10.2."""

import jax
import jax.numpy as jnp

try:
    print(jax.jit(lambda: jax.empty_ref(jax.typeof(3.0)))())
except Exception as error:
    print(type(error).__name__)
