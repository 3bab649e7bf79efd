"""Gradients of checkpointed functions, which use the barrier, on both sides."""

import jax
import jax.numpy as jnp

f = lambda x: jnp.sin(jnp.sin(x))
print(jax.grad(jax.checkpoint(f))(1.0).round(5), jax.grad(f)(1.0).round(5))
print(jax.jit(jax.grad(jax.checkpoint(f)))(1.0).round(5))
