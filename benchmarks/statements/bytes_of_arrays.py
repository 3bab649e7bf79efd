"""Bytes of arrays by the methods that exist on both sides."""

import jax.numpy as jnp

x = jnp.array([1, 256, -2], jnp.int16)
print(x.view(jnp.uint8).tolist(), x.tobytes(), x.__array__().byteswap().tolist())
