import jax

jax.config.update("jax_debug_key_reuse", True)


def draw(key):
    a, b = jax.random.split(key)
    return jax.random.bits(a) + jax.random.bits(b)


# a batch can be empty
none = jax.random.split(jax.random.key(0), 0)
print(jax.vmap(draw)(none).shape)
