"""Attention in bfloat16 and its gradients, on a CPU."""

import jax
import jax.numpy as jnp

q, k, v = jax.random.normal(jax.random.key(0), (3, 1, 8, 2, 16), jnp.bfloat16)
f = lambda *args: jax.nn.dot_product_attention(*args).astype(jnp.float32).sum()
value, gradients = jax.jit(jax.value_and_grad(f, (0, 1, 2)))(q, k, v)
print(value, [float(abs(g.astype(jnp.float32)).sum()) for g in gradients])
