"""`scipy.linalg.qr` without pivots."""

import jax.numpy as jnp
from jax.scipy import linalg

x = jnp.array([[1.0, 2], [3, 4], [5, 7]])
for mode in ("full", "economic", "r"):
    print(mode, [abs(part).round(3).tolist() for part in linalg.qr(x, mode=mode)])
