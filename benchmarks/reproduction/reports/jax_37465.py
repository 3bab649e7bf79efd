import time

import jax
import jax.numpy as jnp

print(f"jax={jax.__version__}")


@jax.jit
def reg(x):
    cost = 0.0
    for i in range(x.ndim):
        d = jnp.diff(x, axis=i)
        cost += jnp.sum(jnp.square(d))
    return cost


grad = jax.jit(jax.grad(reg))
x = jax.random.normal(jax.random.key(0), (128, 128, 128), dtype="float32")
jax.block_until_ready(reg(x))
jax.block_until_ready(grad(x))
start = time.perf_counter()
for _ in range(20):
    jax.block_until_ready(reg(x))
middle = time.perf_counter()
for _ in range(20):
    jax.block_until_ready(grad(x))
print(f"forward {(middle - start) * 50:.2f} ms, gradient {(time.perf_counter() - middle) * 50:.2f} ms")
