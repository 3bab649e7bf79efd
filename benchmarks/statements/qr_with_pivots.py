"""On a CPU `scipy.linalg.qr` refuses `pivoting=True` up to 0.4.38."""

import jax.numpy as jnp
from jax.scipy import linalg

try:
    print(linalg.qr(jnp.array([[1.0, 2], [3, 4], [5, 7]]), pivoting=True)[2].tolist())
except NotImplementedError as error:
    print(type(error).__name__)
