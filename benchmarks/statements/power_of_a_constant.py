"""The square of a NumPy array that a jaxpr has as a constant."""

import jax
import jax.numpy as jnp
import numpy as np

numbers = np.array([1.0, 2.0, 3.0])
(constant,) = jax.make_jaxpr(lambda x: x + numbers)(jnp.ones(3)).consts

try:
    print(constant**2)
except TypeError as error:
    print(type(error).__name__)
