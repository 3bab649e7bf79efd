"""Batches of matrices and of right-hand sides in `jax.scipy.linalg` and `lax.linalg`."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import jax.scipy.linalg
import numpy as np
from jax import lax

from conformance.kit import Observed, defaults, deviation, probe

defaults(platforms=("cpu",), rtol=1e-4, atol=1e-5)

MATRIX = np.float32([[4, 1], [1, 3]])
MATRICES = np.stack([MATRIX, 2 * MATRIX, MATRIX + np.eye(2, dtype=np.float32)])
COLUMN = np.float32([[1], [2]])
COLUMNS = np.stack([COLUMN, 2 * COLUMN, 3 * COLUMN])
OPERANDS = {
    "matrices": (MATRICES, COLUMN),
    "matrices_and_vector": (MATRICES, COLUMN[:, 0]),
    "columns": (MATRIX, COLUMNS),
}


def solve_cholesky(a, b):
    """Solve a symmetric system by its Cholesky factor."""
    return jax.scipy.linalg.cho_solve((jnp.linalg.cholesky(a), True), b)


def solve_lu(a, b):
    """Solve a system by its LU factors."""
    return jax.scipy.linalg.lu_solve(jax.scipy.linalg.lu_factor(a), b)


SOLVERS = {
    "cho_solve": (solve_cholesky, lambda a: a),
    "lu_solve": (solve_lu, lambda a: a),
    "solve_triangular": (jax.scipy.linalg.solve_triangular, np.triu),
}
ONE_BATCH_FOR_BOTH = deviation(
    "jax<0.10",
    reason="matrices and right-hand sides had to have the same batch",
    issue="jax-ml/jax@7d4fae027ba7",
)


@probe(source="jax-ml/jax@7d4fae027ba7", params=[*SOLVERS], deviations=[ONE_BATCH_FOR_BOTH])
def solver(env, name):
    """A solver with several matrices and one right-hand side, or the reverse, from 0.10.0 on."""
    solve, select = SOLVERS[name]
    operands = {name: (select(a), b) for name, (a, b) in OPERANDS.items()}
    return Observed(
        {name: jax.jit(solve)(a, b) for name, (a, b) in operands.items()},
        {name: solve_exactly(a, b) for name, (a, b) in operands.items()},
    )


def solve_exactly(a, b):
    """Solve systems by NumPy, in float64."""
    exact = np.linalg.solve(np.float64(a), b if b.ndim > 1 else b[:, None])
    return exact if b.ndim > 1 else exact[..., 0]


ONE_MATRIX = deviation(
    "jax<0.10",
    error="ValueError",
    match="must be a 2-D array",
    reason="a single matrix was accepted",
    issue="jax-ml/jax@7d4fae027ba7",
)


@probe(source="jax-ml/jax@7d4fae027ba7", deviations=[ONE_MATRIX])
def polar_decomposition(env):
    """`jax.scipy.linalg.polar` of several matrices, from 0.10.0 on."""
    unitary, positive = jax.jit(jax.scipy.linalg.polar)(MATRICES)
    # The matrices are symmetric and positive definite.
    identity = np.broadcast_to(np.eye(2), MATRICES.shape)
    return Observed((unitary, positive), reference=(identity, np.float64(MATRICES)))


NO_BATCHING_RULE = deviation(
    "jax<0.5.1",
    reason="the batching rule returned a wrong number of axes",
    issue="jax-ml/jax@ea4e324fe4f0",
)
SYMMETRIC = np.float32([[4, 1, 2], [1, 3, 0], [2, 0, 1]])
REDUCTIONS = {
    "hessenberg": lambda a: jax.scipy.linalg.hessenberg(a, calc_q=True)[0],
    "tridiagonal": lambda a: lax.linalg.tridiagonal(a)[1],
    "householder_product": lambda a: lax.linalg.householder_product(a, a[0] / 8),
}


@probe(source="jax-ml/jax@ea4e324fe4f0", params=[*REDUCTIONS], deviations=[NO_BATCHING_RULE])
def mapped_reduction(env, name):
    """`jax.vmap` of a reduction to a simpler matrix gives that of each, from 0.5.1 on."""
    reduce = REDUCTIONS[name]
    matrices = np.stack([SYMMETRIC, SYMMETRIC + np.eye(3, dtype=np.float32)])
    each = [np.float64(jax.jit(reduce)(a)) for a in matrices]
    return Observed(jax.jit(jax.vmap(reduce))(matrices), reference=np.stack(each))
