"""Products, decompositions and Fourier transforms of a sharded matrix."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from conformance.kit import Observed, defaults, deviation, probe

from ._helpers import SIZE, Operation, compare, numpy_api, operators

defaults(devices=8, platforms=("cpu",), xla_flags=["--xla_backend_optimization_level=0"])

EYE = np.eye(SIZE, dtype=np.float32)


def int8_of(a):
    """Return a matrix of small integers."""
    return (9 * a).astype(np.int8)


OPERATIONS = {
    "matmul": operators(lambda a: a @ a),
    "matmul_transposed": operators(lambda a: a @ a.T),
    "matrix_vector": operators(lambda a: a @ a[0]),
    "dot": numpy_api(lambda n, a: n.dot(a[0], a[:, 1])),
    "outer": numpy_api(lambda n, a: n.outer(a[0], a[:, 1])),
    "matmul_batched": operators(lambda a: a.reshape(4, 4, 4) @ a.reshape(4, 4, 4)),
    "einsum_diagonal": numpy_api(lambda n, a: n.einsum("ii->i", a)),
    "einsum_batched": numpy_api(lambda n, a: n.einsum("ij,ik->ijk", a, a)),
    "tensordot": numpy_api(lambda n, a: n.tensordot(a, a, ((0,), (0,)))),
    "dot_int8": Operation(
        lambda a: lax.dot(int8_of(a), int8_of(a), preferred_element_type=np.int32),
        lambda a: int8_of(a).astype(np.int32) @ int8_of(a).astype(np.int32),
    ),
    "cross": numpy_api(lambda n, a: n.cross(a[:, :3], a[:, 3:6])),
    "inv": numpy_api(lambda n, a: n.linalg.inv(a + 9 * EYE)),
    "cholesky": numpy_api(lambda n, a: n.linalg.cholesky(a @ a.T + 9 * EYE)),
    "det": numpy_api(lambda n, a: n.linalg.det(a / 9 + EYE)),
    "qr": numpy_api(lambda n, a: n.abs(n.linalg.qr(a + 3 * EYE)[1])),
    "svd": numpy_api(lambda n, a: n.linalg.svd(a + 3 * EYE, compute_uv=False)),
    "eigvalsh": numpy_api(lambda n, a: n.linalg.eigvalsh(a + a.T)),
    "solve_triangular": Operation(
        lambda a: jax.scipy.linalg.solve_triangular(jnp.tril(a) + 3 * EYE, a, lower=True),
        lambda a: np.linalg.solve(np.tril(a) + 3 * EYE, a),
    ),
    "fft": numpy_api(lambda n, a: n.abs(n.fft.fft(a, axis=0)).astype(np.float32)),
    "rfft": numpy_api(lambda n, a: n.abs(n.fft.rfft(a, axis=1)).astype(np.float32)),
    "fft2": numpy_api(lambda n, a: n.abs(n.fft.fft2(a)).astype(np.float32)),
    "irfft_of_rfft": numpy_api(
        lambda n, a: n.fft.irfft(n.fft.rfft(a, axis=0), axis=0).astype(np.float32)
    ),
    "fftshift": numpy_api(lambda n, a: n.fft.fftshift(a)),
}


WRONG_GRADIENT = deviation(
    "jax<0.6",
    params=["det"],
    outcome="ok",
    reason="the gradient of the determinant was wrong for sharded rows",
)
NO_GRADIENT = deviation(
    "jax>=0.7",
    params=["fft2"],
    outcome="ok",
    match="gradient.*RuntimeError",
    reason="the FFT of the runtime refuses the layout of its operand",
)


@probe(source="jax-ml/jax#16909", params=[*OPERATIONS], deviations=[WRONG_GRADIENT, NO_GRADIENT])
def transformed(env, name):
    """A product, decomposition or transform of a sharded matrix equals NumPy."""
    return compare(env, OPERATIONS[name], eager=False)


OF_EACH_MATRIX = {
    "cholesky": lambda n, a: n.linalg.cholesky(a),
    "eigh": lambda n, a: n.linalg.eigh(a)[0],
    "inv": lambda n, a: n.linalg.inv(a),
    "qr": lambda n, a: n.abs(n.linalg.qr(a)[1]),
    "solve": lambda n, a: n.linalg.solve(a, a[:, :, :1]),
    "svd": lambda n, a: n.linalg.svd(a)[1],
}
MATRICES_GATHERED = deviation(
    "jax<0.5.3",
    outcome="ok",
    reason="the calls of LAPACK were not partitioned, so that all devices had all matrices",
    issue="jax-ml/jax@f93c2a1aa51d",
)


@probe(source="jax-ml/jax@f93c2a1aa51d", params=[*OF_EACH_MATRIX], deviations=[MATRICES_GATHERED])
def sharded_batch(env, name):
    """A decomposition of matrices on several devices leaves each result where its matrix is."""
    a = np.eye(3, dtype=np.float32) * np.arange(2, 10, dtype=np.float32)[:, None, None] + 1
    sharding = NamedSharding(env.mesh(8, "x"), P("x"))
    out = jax.jit(lambda a: OF_EACH_MATRIX[name](jnp, a))(jax.device_put(a, sharding))
    value = OF_EACH_MATRIX[name](np, a)
    return Observed(
        {"shard": list(out.sharding.shard_shape(out.shape)), "value": out},
        {"shard": [1, *value.shape[1:]], "value": value.astype(np.float32)},
    )
