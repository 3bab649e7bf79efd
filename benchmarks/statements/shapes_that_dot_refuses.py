"""`lax.dot` of shapes that do not fit: a `TypeError` up to 0.7.0, then a `ValueError`."""

import jax.numpy as jnp
from jax import lax

for shape in ((2, 3), (1, 2, 3)):
    try:
        print(lax.dot(jnp.ones(shape), jnp.ones((2, 3))))
    except (TypeError, ValueError) as error:
        print(type(error).__name__)
