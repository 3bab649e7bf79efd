"""A custom VJP under remat without `optimize_remat`."""

import jax
import jax.numpy as jnp


@jax.custom_vjp
def f(x):
    return jnp.sin(x)


f.defvjp(lambda x: (jnp.sin(x), x), lambda x, g: (g * jnp.cos(x),))
print(jax.grad(jax.remat(f))(1.0).round(5), jax.jit(jax.grad(jax.remat(f)))(1.0).round(5))
