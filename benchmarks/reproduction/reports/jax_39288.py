import jax
import jax.numpy as jnp


def store(r, x):
    r[...] = x


box = jax.new_ref(jnp.zeros((2, 3)))
jax.vmap(store, in_axes=(1, 0))(box, jnp.ones((3, 2)))
print(box[...])
