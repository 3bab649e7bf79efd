"""Special functions like `boxcox` that exist on both sides."""

import jax.numpy as jnp
import jax.scipy.special as special

x = jnp.array([0.1, 0.5, 2.0, 10.0])
print(special.xlogy(x, x + 1).round(4), special.xlog1py(x, x).round(4))
print(special.entr(x).round(4), special.rel_entr(x, x[::-1]).round(4))
