import jax.numpy as jnp
from jax.experimental import enable_x64

with enable_x64():
    print(jnp.ones(2).dtype)
print(jnp.ones(2).dtype)
