import jax

keys = jax.random.split(jax.random.key(0), 4)
lookup = jax.jit(lambda k: k.at[100].get(mode="fill"))
print(jax.random.key_data(lookup(keys)))
