"""The constructors of `jax.scipy.linalg` that exist on both sides."""

import jax.numpy as jnp
import jax.scipy.linalg as linalg

row = jnp.arange(1.0, 4)
for name in ("toeplitz", "circulant", "companion", "fiedler"):
    print(name, getattr(linalg, name)(row).round(4).tolist())
for name in ("hilbert", "pascal", "dft", "helmert", "block_diag"):
    print(name, getattr(linalg, name)(3).round(4).tolist())
