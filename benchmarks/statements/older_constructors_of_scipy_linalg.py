"""The constructors of `jax.scipy.linalg` that exist on both sides."""

import jax.numpy as jnp
import jax.scipy.linalg as linalg

for name in ("hilbert", "pascal", "block_diag"):
    print(name, getattr(linalg, name)(3).round(4).tolist())
print("toeplitz", linalg.toeplitz(jnp.arange(1.0, 4)).tolist())
