"""`switch` whose branches return other structures."""

import jax
import jax.numpy as jnp

try:
    print(jax.lax.switch(0, [lambda x: {"a": x}, lambda x: {"a": (x, x)}], 42))
except Exception as error:
    print(type(error).__name__)
