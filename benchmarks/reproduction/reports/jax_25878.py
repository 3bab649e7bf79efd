import jax
import jax.numpy as jnp


def pick(table, i):
    return table.at[i].get(mode="clip")


table = jnp.array([2.0])
past_the_end = jnp.array([1])
plain = jax.jacrev(pick)(table, past_the_end)
mapped = jax.jacrev(jax.vmap(pick, in_axes=(None, 0)))(table, past_the_end)
print("plain ", plain)
print("mapped", mapped)
assert (plain == mapped).all(), "vmap changes the gradient"
