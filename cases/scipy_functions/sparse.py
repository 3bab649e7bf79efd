"""Sparse matrices (BCOO, BCSR) and segment sums against dense arrays."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import export
from jax.experimental import sparse

from conformance.kit import Observed, defaults, deviation, probe
from conformance.kit.endings import refusal

defaults(source="jax-ml/jax@0d4bcde7cae5", rtol=1e-5, atol=1e-5)

DENSE = np.array([[0, 2, 0, 1], [0, 0, 0, 0], [3, 0, -1, 0]], np.float32)
OTHER = np.arange(1, 13, dtype=np.float32).reshape(4, 3)
OPERATIONS = {
    "matmul_dense": (lambda m: m @ OTHER, lambda m: m @ OTHER),
    "matmul_from_the_left": (lambda m: jnp.asarray(OTHER) @ m, lambda m: OTHER @ m),
    "matvec": (lambda m: m @ OTHER[:, 0], lambda m: m @ OTHER[:, 0]),
    "transpose": (lambda m: m.T.todense(), lambda m: m.T),
    "sum": (lambda m: m.sum(0).todense(), lambda m: m.sum(0)),
    "negative": (lambda m: (-m).todense(), lambda m: -m),
    "multiply_dense": (lambda m: (m * OTHER.T).todense(), lambda m: m * OTHER.T),
    "add_sparse": (lambda m: (m + m).todense(), lambda m: 2 * m),
    "multiply_sparse": (lambda m: (m * m).todense(), lambda m: m * m),
    "matmul_sparse": (lambda m: (m @ m.T).todense(), lambda m: m @ m.T),
    "slice": (lambda m: m[1:, 2:].todense(), lambda m: m[1:, 2:]),
    "reshape": (lambda m: m.reshape(6, 2).todense(), lambda m: m.reshape(6, 2)),
    "concatenate": (
        lambda m: sparse.bcoo_concatenate([m, m], dimension=0).todense(),
        lambda m: np.concatenate([m, m]),
    ),
    "reverse": (lambda m: sparse.bcoo_rev(m, dimensions=(1,)).todense(), lambda m: m[:, ::-1]),
    "sparsify": (
        lambda m: sparse.sparsify(lambda a: jnp.sin(a).T)(m).todense(),
        lambda m: np.sin(m).T,
    ),
    "as_bcsr": (
        lambda m: sparse.BCSR.from_bcoo(m.sort_indices()) @ OTHER,
        lambda m: m @ OTHER,
    ),
}


@probe(params=[*OPERATIONS])
def bcoo(env, name):
    """An operation on a sparse matrix gives the numbers of the dense one."""
    fn, reference = OPERATIONS[name]
    value = jax.jit(lambda a: fn(sparse.BCOO.fromdense(a, nse=4)))(DENSE)
    return Observed(value, reference(DENSE))


@probe()
def duplicates(env):
    """Duplicate indices are added, and an index out of bounds is dropped."""
    indices = np.array([[0, 1], [2, 3], [0, 1], [3, 0]])
    data = np.array([1, 2, 4, 9], np.float32)
    expected = np.zeros((3, 4), np.float32)
    np.add.at(expected, tuple(indices[:3].T), data[:3])

    def run(data, indices):
        matrix = sparse.BCOO((data, indices), shape=(3, 4))
        return {"dense": matrix.todense(), "summed": matrix.sum_duplicates(nse=3).todense()}

    return Observed(jax.jit(run)(data, indices), dict.fromkeys(("dense", "summed"), expected))


@probe()
def gradient(env):
    """`sparse.grad` differentiates with respect to the stored elements alone."""

    def run(a):
        matrix = sparse.BCOO.fromdense(a, nse=4)
        return sparse.grad(lambda m: (m @ OTHER).sum())(matrix).todense()

    return Observed(jax.jit(run)(DENSE), np.where(DENSE != 0, OTHER.sum(1), 0).astype(np.float32))


SEGMENTS = np.array([0, 2, 2, 0, 5], np.int32)
REDUCTIONS = {
    "segment_sum": (np.add, 0),
    "segment_prod": (np.multiply, 1),
    "segment_max": (np.maximum, -np.inf),
    "segment_min": (np.minimum, np.inf),
}


@probe(source="jax-ml/jax@9adfb806253b", params=[*REDUCTIONS])
def segments(env, name):
    """A reduction of segments: an empty one, and one out of bounds."""
    ufunc, start = REDUCTIONS[name]
    x = np.array([2, 3, -4, 5, 7], np.float32)
    expected = np.full(4, start, np.float32)
    ufunc.at(expected, SEGMENTS[:4], x[:4])
    run = getattr(jax.ops, name)
    value = jax.jit(
        lambda a: {"plain": run(a, SEGMENTS, 4), "buckets": run(a, SEGMENTS, 4, bucket_size=2)}
    )(x)
    return Observed(value, dict.fromkeys(("plain", "buckets"), expected))


COTANGENT_KEPT_THE_BATCH = deviation(
    "jax>=0.8.2,<0.10.2",
    error="ValueError",
    match="cotangent type",
    reason="the gradient of the shared elements was not summed over the batch",
    issue="jax-ml/jax@960061df235a",
)


@probe(source="jax-ml/jax@960061df235a", deviations=[COTANGENT_KEPT_THE_BATCH])
def gradient_of_mapped_products(env):
    """The gradient with respect to the elements of a matrix, of its products under vmap."""
    rows, columns = np.nonzero(DENSE)

    @jax.jit
    def gradient(data, vectors):
        def total(data):
            matrix = sparse.BCOO((data, np.stack([rows, columns], 1)), shape=DENSE.shape)
            return (jax.vmap(lambda v: matrix @ v, 1, 1)(vectors) ** 2).sum()

        return jax.grad(total)(data)

    exact = 2 * np.float64(DENSE @ OTHER @ OTHER.T)[rows, columns]
    return Observed(gradient(DENSE[rows, columns], OTHER), reference=exact)


STRUCTURE_LOST = deviation(
    "jax<0.4.31",
    outcome="ok",
    reason="the gradient of an argument was that of its first leaf",
    issue="jax-ml/jax@802a14cd619c",
)


@probe(source="jax-ml/jax@802a14cd619c", deviations=[STRUCTURE_LOST])
def gradient_of_a_tree(env):
    """`sparse.grad` by a dictionary is a dictionary from 0.4.31 on."""
    matrix = sparse.BCOO.fromdense(DENSE)
    gradient = sparse.grad(lambda tree: (tree["m"] @ OTHER).sum())({"m": matrix})
    return Observed(type(gradient).__name__, reference="dict")


POINTERS_WERE_INT32 = deviation(
    "jax<0.6.1",
    outcome="ok",
    reason="the pointers to rows were int32",
    issue="jax-ml/jax@5f30087e3692",
)


@probe(source="jax-ml/jax@5f30087e3692", deviations=[POINTERS_WERE_INT32])
def index_dtype_of_bcsr(env):
    """`BCSR.from_bcoo` keeps the dtype of the indices, also for its pointers, from 0.6.1 on."""
    matrix = sparse.BCOO.fromdense(DENSE, index_dtype=np.int16)
    result = sparse.BCSR.from_bcoo(matrix)
    dtypes = [str(result.indices.dtype), str(result.indptr.dtype)]
    return Observed(dtypes, reference=["int16", "int16"])


ONE_ROW_OF_ELEMENTS = deviation(
    "jax<0.4.31",
    error="ValueError",
    match="inferred type",
    reason="the shape of the product did not count the batch of the matrix",
    issue="jax-ml/jax#21921",
)


@probe(source="jax-ml/jax#21921", platforms=("cpu",), deviations=[ONE_ROW_OF_ELEMENTS])
def product_of_broadcast_elements(env):
    """Under jit, a batched matrix whose rows share one stored element, times a sparse vector."""
    columns = np.arange(5, dtype=np.int32).reshape(5, 1, 1)
    matrix = sparse.BCOO((np.float32([[2]]), columns), shape=(5, 5))
    vector = sparse.BCOO((np.float32([3]), np.array([[3]], np.int32)), shape=(5,))
    product = jax.jit(lambda a, x: (a @ x).todense())(matrix, vector)
    return Observed(product, np.float32([0, 0, 0, 6, 0]))


TRUTH_IS_COUNTED = deviation(
    outcome="ok",
    reason="the elements are converted to int32, because they may be added",
)


@probe(params={"bcoo": {"form": "BCOO"}, "bcsr": {"form": "BCSR"}}, deviations=[TRUTH_IS_COUNTED])
def matrix_of_truth(env, form):
    """`todense` of a sparse boolean matrix is silently int32, so `~` of it is a number."""
    dense = getattr(sparse, form).fromdense(DENSE > 0).todense()
    return Observed(~dense, reference=DENSE <= 0)


ROWS_AND_COLUMNS_EXCHANGED = deviation(
    "jax<0.12",
    outcome="ok",
    reason="the gradient took the cotangent of the column and the vector's element of the row",
    issue="jax-ml/jax#40625",
)


@probe(
    source="jax-ml/jax#40625",
    params={"csc": {"form": "CSC"}, "transposed_csr": {"form": "CSR"}},
    deviations=[ROWS_AND_COLUMNS_EXCHANGED],
)
def gradient_of_column_products(env, form):
    """The gradient with respect to the elements of a CSC matrix, or of a transposed CSR matrix."""
    stored = getattr(sparse, form).fromdense(DENSE)
    dense = DENSE if form == "CSC" else DENSE.T
    vector = np.arange(1, dense.shape[1] + 1, dtype=np.float32)

    @jax.jit
    def total(data):
        matrix = type(stored)((data, stored.indices, stored.indptr), shape=stored.shape)
        return (((matrix if form == "CSC" else matrix.T) @ vector) ** 2).sum()

    columns, rows = np.nonzero(dense.T)
    exact = 2 * (dense @ vector)[rows] * vector[columns]
    return Observed(jax.grad(total)(stored.data), reference=exact)


RESULTS_AS_ARGUMENTS = deviation(
    "jax>=0.9.2",
    error="ValueError",
    match="PyTreeDef",
    reason="the arguments are unflattened with the tree of the results",
    issue="jax-ml/jax@c43f0a0fae3a",
)
CUSTOM_DERIVATIVES = {
    "two_arguments": lambda m: scale(m, OTHER.T).todense(),
    "two_results": lambda m: double_and_triple(m)[0].todense(),
}


@jax.custom_jvp
def multiply(x, y):
    """Return x * y, with a rule for its derivative."""
    return x * y


@jax.custom_jvp
def multiples(x):
    """Return 2x and 3x, with a rule for their derivatives."""
    return 2 * x, 3 * x


multiply.defjvp(lambda x, t: (x[0] * x[1], t[0] * x[1] + x[0] * t[1]))
multiples.defjvp(lambda x, t: ((2 * x[0], 3 * x[0]), (2 * t[0], 3 * t[0])))
scale, double_and_triple = sparse.sparsify(multiply), sparse.sparsify(multiples)


@probe(
    source="jax-ml/jax@c43f0a0fae3a",
    params=[*CUSTOM_DERIVATIVES],
    deviations=[RESULTS_AS_ARGUMENTS],
)
def sparsified_custom_derivative(env, name):
    """`sparsify` of a function with a rule of `custom_jvp`: a ValueError from 0.9.2 on.

    Functions with one argument and one result, such as `jax.nn.relu`, still work.
    """
    value = CUSTOM_DERIVATIVES[name](sparse.BCOO.fromdense(DENSE))
    return Observed(value, DENSE * OTHER.T if name == "two_arguments" else 2 * DENSE)


KERNEL_WITHOUT_GUARANTEES = deviation(
    "jax>=0.6.1",
    platform="cpu",
    outcome="ok",
    reason="the product on a CPU is a custom call without a guarantee of compatibility",
    issue="jax-ml/jax@9e28d739c254",
)


@probe(
    source="jax-ml/jax@9e28d739c254",
    platforms=("cpu",),
    deviations=[KERNEL_WITHOUT_GUARANTEES],
)
def exported_product(env):
    """`jax.export` of the product of a BCSR matrix and a vector: a ValueError from 0.6.1 on."""
    matrix = sparse.BCSR.fromdense(DENSE)
    product = export.export(jax.jit(lambda v: matrix @ v))
    return Observed(refusal(lambda: product(OTHER[:, 0]), "no compatibility guarantees"), "ran")


NUMBER_MADE_DENSE = deviation(
    "jax>=0.4.34",
    outcome="ok",
    match="ArrayImpl",
    reason="the product with a number is no longer a multiplication, and its rule makes it dense",
    issue="jax-ml/jax@1cc96616baab",
)


@probe(source="jax-ml/jax@1cc96616baab", deviations=[NUMBER_MADE_DENSE])
def dot_of_a_number_and_a_sparse_matrix(env):
    """`sparsify(jnp.dot)` of a number and a BCOO matrix is silently dense from 0.4.34 on."""
    product = sparse.sparsify(jnp.dot)(2.0, sparse.BCOO.fromdense(DENSE))
    return Observed({"type": type(product).__name__}, reference={"type": "BCOO"})
