"""Functions near both that exist on both sides."""

import jax.numpy as jnp
from jax.scipy import special

x, at = jnp.arange(6.0).reshape(2, 3), jnp.array([[2], [0]])
print(jnp.take_along_axis(x, at, 1).tolist(), x.at[jnp.arange(2)[:, None], at].set(9).tolist())
print(jnp.put(x, jnp.array([1]), 5.0, inplace=False).tolist())
print(special.gammaln(jnp.array([0.5, 3.0, 10.0])).round(4).tolist())
