# Ends in a second, or never.
import jax
import jax.numpy as jnp
import numpy as np

inner = jax.jit(lambda x: jnp.sort(x @ x, axis=0).sum())


def host(x):
    return np.asarray(inner(x))


@jax.jit
def f(x):
    y = jnp.tanh(x @ x)
    return jax.pure_callback(host, jax.ShapeDtypeStruct((), x.dtype), y) + y[0, 0]


xs = [jnp.full((300, 300), 0.001 * i) for i in range(40)]
out = [f(x) for x in xs]
jax.block_until_ready(out)
print("all", len(out), "results arrived")
