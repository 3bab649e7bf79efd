"""`jax.export` of linear algebra and random numbers for matrices of a symbolic size."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import export

from conformance.kit import Observed, defaults, deviation, probe

defaults(platforms=("cpu",))

MATRIX = np.array([[4, 1, 0], [1, 3, 1], [0, 1, 2]], np.float32)


def exact_exponential(a):
    """Return the exponential of a symmetric matrix."""
    values, vectors = np.linalg.eigh(a)
    return vectors @ np.diag(np.exp(values)) @ vectors.T


FUNCTIONS = {
    "lu": (
        lambda a: jnp.prod(jnp.diagonal(jax.scipy.linalg.lu(a, permute_l=True)[1])),
        np.linalg.det,
    ),
    "eigenvalues": (jnp.linalg.eigvalsh, np.linalg.eigvalsh),
    "singular_values": (
        lambda a: jnp.linalg.svd(a[:, :2], compute_uv=False),
        lambda a: np.linalg.svd(a[:, :2], compute_uv=False),
    ),
    "expm": (jax.scipy.linalg.expm, exact_exponential),
    "inverse": (jnp.linalg.inv, np.linalg.inv),
    "solution": (lambda a: jnp.linalg.solve(a, a[:, 0]), lambda a: np.linalg.solve(a, a[:, 0])),
    "hessenberg": (lambda a: abs(jax.scipy.linalg.hessenberg(a)), np.abs),
}
BATCH_ONLY = deviation(
    "jax<0.4.35",
    params=["eigenvalues", "singular_values", "expm", "inverse", "solution"],
    outcome="raised",
    reason="only the batch might be symbolic, not the size of the matrices",
)
LU_OF_BATCHES = deviation(
    "jax<0.4.34",
    params=["lu"],
    error="NotImplementedError",
    match="only for the batch dimensions",
    reason="only the batch might be symbolic, not the size of the matrices",
)
WORKSPACE = deviation(
    "jax<0.5.1",
    params=["hessenberg"],
    error="TypeError",
    match="lapack_sgehrd_workspace",
    reason="the size of LAPACK's workspace must be known",
)
SHAPE_OF_A_VALUE = deviation(
    "jax>=0.5.1",
    params=["hessenberg"],
    error="AttributeError",
    match="has no attribute 'shape'",
    reason="the lowering reads the shape of a value of the compiler, which has none",
)


@probe(
    source="jax-ml/jax@67f24df74072",
    params=[*FUNCTIONS],
    deviations=[BATCH_ONLY, LU_OF_BATCHES, WORKSPACE, SHAPE_OF_A_VALUE],
)
def exported_for_any_size(env, name):
    """A function of a matrix whose number of rows and columns is symbolic, called with three."""
    fn, exact = FUNCTIONS[name]
    (size,) = export.symbolic_shape("b")
    argument = jax.ShapeDtypeStruct((size, size), np.float32)
    out = export.export(jax.jit(fn))(argument).call(MATRIX)
    return Observed(out, np.asarray(exact(MATRIX.astype(np.float64)), np.float64))


EVEN_NUMBERS_ONLY = deviation(
    "jax<0.5",
    error="InconclusiveDimensionOperation",
    match="must be even",
    reason="threefry made its numbers in two halves",
    issue="jax-ml/jax@a60ead6fd1a0",
)


@probe(source="jax-ml/jax@a60ead6fd1a0", deviations=[EVEN_NUMBERS_ONLY])
def random_numbers_of_any_size(env):
    """A function that draws as many numbers as its argument has, exported for any number."""
    (size,) = export.symbolic_shape("b")

    def noise(x):
        return jax.random.uniform(jax.random.key(0), x.shape)

    exported = export.export(jax.jit(noise))(jax.ShapeDtypeStruct((size,), np.float32))
    x = np.zeros(3, np.float32)
    return Observed(np.asarray(exported.call(x)), np.asarray(jax.jit(noise)(x)))


HLO_SHARDINGS_LOST = deviation(
    "jax>=0.10",
    outcome="ok",
    reason="the export holds named shardings in place of the compiler's",
)


@probe(source="jax-ml/jax#33597", devices=4, deviations=[HLO_SHARDINGS_LOST])
def shardings_of_an_export(env):
    """`in_shardings_hlo` of an export with sharded arguments is None in later releases."""
    rows = jax.sharding.NamedSharding(env.mesh(4, "x"), jax.sharding.PartitionSpec("x"))
    exported = export.export(jax.jit(jnp.negative, in_shardings=rows))(np.ones(8, np.float32))
    known = [sharding is not None for sharding in exported.in_shardings_hlo]
    return Observed(
        {"devices": exported.nr_devices, "known": known}, {"devices": 4, "known": [True]}
    )
