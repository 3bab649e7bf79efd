import jax
import jax.numpy as jnp


def is_jax(x):
    # by class, so that it can be cached
    return issubclass(type(x), jax.Array)


print("array ", is_jax(jnp.ones(3)))
jax.jit(lambda x: print("tracer", is_jax(x)))(jnp.ones(3))
