"""Sparse matrices of `jax.experimental.sparse`, against the same operations on dense ones."""

from __future__ import annotations

import jax
import numpy as np
from jax.experimental import sparse

from conformance.kit import Observed, defaults, deviation, probe

from ._helpers import floats

defaults(platforms=("cpu",))


ONE_ROW_OF_ELEMENTS = deviation(
    "jax<0.4.31",
    error="ValueError",
    match="inferred type",
    reason="the shape of the product did not count the batch of the matrix",
    issue="jax-ml/jax#21921",
)


@probe(source="jax-ml/jax#21921", deviations=[ONE_ROW_OF_ELEMENTS])
def product_of_broadcast_elements(env):
    """Under jit, a batched matrix whose rows share one stored element, times a sparse vector."""
    columns = np.arange(5, dtype=np.int32).reshape(5, 1, 1)
    matrix = sparse.BCOO((floats(2).reshape(1, 1), columns), shape=(5, 5))
    vector = sparse.BCOO((floats(3).reshape(1), np.array([[3]], np.int32)), shape=(5,))
    product = jax.jit(lambda a, x: (a @ x).todense())(matrix, vector)
    return Observed(product, floats(0, 0, 0, 6, 0))
