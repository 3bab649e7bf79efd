"""`jax.debug.print` with a format of numbers raises up to 0.4.31."""

import jax


@jax.jit
def f(x):
    jax.debug.print("x: {x:.2f}", x=x)


try:
    f(2)
    jax.effects_barrier()
except TypeError as error:
    print(type(error).__name__)
