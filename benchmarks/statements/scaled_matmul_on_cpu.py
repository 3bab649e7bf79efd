"""`jax.nn.scaled_matmul` is refused on a CPU up to 0.10.2."""

import jax
import jax.numpy as jnp

x = jnp.ones((1, 32, 64), jnp.float8_e4m3fn)
scale = jnp.ones((1, 32, 2), jnp.float8_e8m0fnu)
try:
    print(jax.nn.scaled_matmul(x, x, scale, scale)[0, 0, :2].tolist())
except NotImplementedError as error:
    print(type(error).__name__)
