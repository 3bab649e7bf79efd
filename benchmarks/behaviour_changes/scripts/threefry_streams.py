import jax

key = jax.random.PRNGKey(0)
print(jax.random.bits(key, (4,)))
