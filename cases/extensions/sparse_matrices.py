"""Sparse matrices of `jax.experimental.sparse`, against the same operations on dense ones."""

from __future__ import annotations

import jax
import numpy as np
from jax.experimental import sparse

from conformance.kit import Observed, defaults, deviation, probe

from ._helpers import floats

defaults(platforms=("cpu",))

BAND = np.array([[4, -1, 0], [-1, 4, -1], [0, -1, 4]], np.float32)
COLUMNS = np.array([[1, 0], [0, 1], [1, 2]], np.float32)

PRODUCTS = {
    "matrix": lambda a: a @ COLUMNS,
    "lanes": lambda a: jax.vmap(lambda x: a @ x, 1, 1)(COLUMNS),
}
COTANGENT_OF_EACH_LANE = deviation(
    "jax>=0.8.2,<0.10.2",
    params=["lanes"],
    error="ValueError",
    match="but got float32.2,7.",
    reason="the cotangent of the matrix, which all lanes share, kept the axis of the lanes",
    issue="jax-ml/jax@960061df235a",
)


@probe(source="jax-ml/jax@960061df235a", params=[*PRODUCTS], deviations=[COTANGENT_OF_EACH_LANE])
def gradient_of_a_product(env, name):
    """The gradient of a sum of squares with respect to the stored elements of a matrix."""
    matrix = sparse.BCOO.fromdense(BAND)

    def loss(elements):
        a = sparse.BCOO((elements, matrix.indices), shape=matrix.shape)
        return (PRODUCTS[name](a) ** 2).sum()

    exact = 2 * (BAND.astype(np.float64) @ COLUMNS) @ COLUMNS.T
    rows, columns = np.asarray(matrix.indices).T
    return Observed(jax.jit(jax.grad(loss))(matrix.data), exact[rows, columns])


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


ALONE = deviation(
    "jax<0.4.31",
    outcome="ok",
    reason="the gradient of a tree was that of its first matrix",
    issue="jax-ml/jax@802a14cd619c",
)


@probe(source="jax-ml/jax@802a14cd619c", deviations=[ALONE])
def gradient_of_a_tree(env):
    """`sparse.grad` with respect to a tree of a sparse matrix and a vector is a tree of both."""
    tree = {"a": sparse.BCOO.fromdense(BAND), "b": floats(1, 2, 3)}
    x = floats(1, 2, 3)
    gradient = sparse.grad(lambda tree: ((tree["a"] @ x) * tree["b"]).sum())(tree)
    if isinstance(gradient, dict):
        gradient = {"a": gradient["a"].todense(), "b": gradient["b"]}
    else:
        gradient = gradient.todense()
    exact = np.outer(tree["b"], x) * (BAND != 0)
    return Observed(gradient, {"a": exact, "b": BAND @ x})


INT32_POINTERS = deviation(
    "jax<0.6.1",
    outcome="ok",
    reason="the pointers of the rows were int32",
    issue="jax-ml/jax@5f30087e3692",
)


@probe(source="jax-ml/jax@5f30087e3692", deviations=[INT32_POINTERS])
def dtype_of_row_pointers(env):
    """A BCSR matrix from a BCOO matrix has the index dtype of that matrix."""
    matrix = sparse.BCSR.from_bcoo(sparse.BCOO.fromdense(BAND, index_dtype=np.int8))
    observed = {"indices": matrix.indices.dtype.name, "indptr": matrix.indptr.dtype.name}
    return Observed(observed, {"indices": "int8", "indptr": "int8"})
