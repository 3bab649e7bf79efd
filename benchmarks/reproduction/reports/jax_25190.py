import timeit

import jax
from jax import lax
from jax import numpy as jnp

steps = 2**17
foo = jnp.arange(steps)
stop = jnp.max(foo)


@jax.jit
def episode(_):
    return lax.while_loop(lambda u: u[0] < stop,
                          lambda u: (jnp.maximum(u[0], foo[u[1]]), u[1] + 1), (0, 0))[1]


episode(0).block_until_ready()
start = timeit.default_timer()
for _ in range(5):
    episode(0).block_until_ready()
print("took", timeit.default_timer() - start)
