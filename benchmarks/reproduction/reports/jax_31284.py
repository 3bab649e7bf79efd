"""An O(n) program that became O(n^2) in a release of 2025."""
import time

import jax
import jax.lax as lax
import jax.numpy as jnp
import jax.random as jr


@jax.jit
def f(init):
    def cond(carry):
        return carry[0] < carry[1].size

    def body(carry):
        step, xs = carry
        i = jr.randint(jr.key(step), shape=(), minval=0, maxval=2)
        return step + 1, xs.at[step].set(xs[i])

    return lax.while_loop(cond, body, (0, init))


for size in (10_000, 20_000, 40_000):
    xs = jnp.zeros((size,))
    jax.block_until_ready(f(xs))
    start = time.time()
    jax.block_until_ready(f(xs))
    print(size, time.time() - start)
