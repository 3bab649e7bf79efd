"""A check that fails within remat raises out of the checkified function up to 0.4.33."""

import jax
import jax.numpy as jnp
from jax.experimental import checkify


@jax.remat
def f(x):
    checkify.check(jnp.all(x > 0), "x must be positive")
    return x + 1


try:
    error, _ = checkify.checkify(f)(jnp.array([0, 2]))
    print("returned", error.get())
except Exception as error:
    print("raised", type(error).__name__)
