"""`lax.dot` of vectors and matrices without dimension numbers."""

import jax.numpy as jnp
from jax import lax

x, y = jnp.arange(6.0).reshape(2, 3), jnp.arange(3.0)
print(lax.dot(x, y).tolist(), lax.dot(y, y), lax.dot(x, x.T).tolist())
print(lax.dot(x.astype(jnp.bfloat16), y.astype(jnp.bfloat16), preferred_element_type=jnp.float32))
