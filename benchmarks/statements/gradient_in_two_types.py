"""Gradients of a product of bfloat16 and float32."""

import jax
import jax.numpy as jnp

w, x = jnp.ones((4, 5)), jnp.linspace(0, 1, 12).reshape(3, 4).astype(jnp.bfloat16)
for kind in (jnp.bfloat16, jnp.float32):
    f = lambda w, x: jnp.mean(jax.lax.dot(x, w, preferred_element_type=kind), dtype=kind)
    print([(g.dtype.name, g.astype(jnp.float32)[0].tolist()) for g in jax.grad(f, (0, 1))(w, x)])
