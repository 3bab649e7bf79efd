import jax.numpy as jnp

x = jnp.arange(4)
print(jnp.ceil(x).dtype, jnp.floor(x).dtype, jnp.trunc(x).dtype)
