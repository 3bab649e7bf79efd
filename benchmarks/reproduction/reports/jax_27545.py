import jax
import jax.numpy as jnp


def inner(x):
    return jnp.array(1)


def outer(x):
    y = jax.jit(inner, inline=True)(x)
    print("inlined result has shape", y.shape)
    return y + x


print(jax.jit(outer)(0))
