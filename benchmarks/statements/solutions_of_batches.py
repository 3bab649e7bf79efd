"""Batched vectors as right-hand sides."""

import warnings

warnings.simplefilter("ignore")

import jax.numpy as jnp
from jax.scipy import linalg

a = jnp.stack([jnp.eye(3) * 4 + 1, jnp.eye(3) * 5 + 1])
b = jnp.arange(6.0).reshape(2, 3)
for solve in (
    lambda: linalg.cho_solve(linalg.cho_factor(a), b),
    lambda: linalg.lu_solve(linalg.lu_factor(a), b),
    lambda: linalg.solve_triangular(a, b),
):
    try:
        print(solve().round(4).tolist())
    except Exception as error:
        print(type(error).__name__)
