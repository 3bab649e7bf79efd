import jax.numpy as jnp

x = jnp.array([[1.0, 2.0, 3.0]])
print(jnp.cov(x, rowvar=False).shape)
