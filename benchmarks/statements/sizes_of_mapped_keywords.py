"""`vmap` over arguments of several sizes, one by keyword."""

import jax
import jax.numpy as jnp

f = lambda x1, x2, a3: x1 + x2 + a3

try:
    print(jax.vmap(f)(jnp.ones(2), a3=jnp.ones(1), x2=jnp.ones(2)))
except Exception as error:
    print(type(error).__name__)
