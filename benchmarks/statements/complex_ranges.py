"""A complex stop is a `TypeError` up to 0.8.1, an empty array from 0.8.2, a `ValueError` from 0.10.0."""

import warnings

warnings.simplefilter("ignore")

import jax.numpy as jnp

try:
    print(jnp.arange(3 + 0j).tolist())
except (TypeError, ValueError) as error:
    print(type(error).__name__)
