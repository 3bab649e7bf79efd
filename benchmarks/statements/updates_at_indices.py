"""Updates by `.at` without the new method `subtract`."""

import jax.numpy as jnp

x, at = jnp.arange(4.0), jnp.array([1, 1])
for name in ("set", "add", "multiply", "divide", "power", "min", "max"):
    print(name, getattr(x.at[at], name)(2.0).tolist())
