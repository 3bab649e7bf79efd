import jax.numpy as jnp

rows = jnp.arange(1000)[:, None]
col = jnp.zeros((), dtype=jnp.int8)
print(rows[999, col])
assert int(rows[999, col]) == 999
