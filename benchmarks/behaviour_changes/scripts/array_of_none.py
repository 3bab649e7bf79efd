import jax.numpy as jnp

table = {"mask": None}
print(jnp.array(table["mask"]))
