"""A compiled program without the flags."""

import jax
import jax.numpy as jnp

f = jax.jit(lambda x: jnp.tanh(x @ x.T).sum())
print(
    f(jnp.arange(6.0).reshape(2, 3)).round(4),
    f.lower(jnp.ones((2, 3))).compile()(jnp.ones((2, 3))).round(4),
)
