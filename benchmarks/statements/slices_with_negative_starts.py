"""Dynamic slices without the option."""

import jax.numpy as jnp
from jax import lax

x = jnp.arange(5.0)
for start in (-9, -4, 1, 4):
    print(start, lax.dynamic_slice(x, (start,), (3,)), lax.dynamic_index_in_dim(x, start))
    print(start, lax.dynamic_update_slice(x, jnp.ones(2), (start,)))
