"""Reductions, sorts, shaping and linear algebra of arrays without elements."""

from __future__ import annotations

import numpy as np

from conformance.kit import defaults, deviation, probe

from ._helpers import SQUARE, compare

defaults(source="jax-ml/jax@ff637e12f145")

FUNCTIONS = {
    "sum": lambda n, a: n.sum(a, axis=0),
    "prod": lambda n, a: n.prod(a),
    "mean": lambda n, a: n.mean(a, axis=0),
    "var": lambda n, a: n.var(a, axis=0),
    "max": lambda n, a: n.max(a, axis=0),
    "max_initial": lambda n, a: n.max(a, axis=0, initial=-1),
    "argmin": lambda n, a: n.argmin(a, axis=0),
    "any": lambda n, a: n.any(a, axis=0),
    "all": lambda n, a: n.all(a),
    "nansum": lambda n, a: n.nansum(a, axis=0),
    "nanmean": lambda n, a: n.nanmean(a),
    "median": lambda n, a: n.median(a),
    "ptp": lambda n, a: n.ptp(a, axis=0),
    "count_nonzero": lambda n, a: n.count_nonzero(a, axis=0),
    "norm": lambda n, a: n.linalg.norm(a),
    "cumsum": lambda n, a: n.cumsum(a, axis=0),
    "cumprod": lambda n, a: n.cumprod(a),
    "diff": lambda n, a: n.diff(a, axis=0),
    "sort": lambda n, a: n.sort(a, axis=0),
    "argsort": lambda n, a: n.argsort(a, axis=0),
    "lexsort": lambda n, a: n.lexsort((a, a)),
    "searchsorted": lambda n, a: n.searchsorted(n.ravel(a), n.ones(2, np.float32)),
    "digitize": lambda n, a: n.digitize(a, np.array([0.5, 1.5], np.float32)),
    "histogram": lambda n, a: n.histogram(a, 3, (0, 1))[0].astype(np.float32),
    "nanquantile": lambda n, a: n.nanquantile(a, 0.5, axis=0),
    "concatenate": lambda n, a: n.concatenate([a, a], axis=-1),
    "concatenate_with_ones": lambda n, a: n.concatenate([n.ravel(a), n.ones(2, np.float32)]),
    "stack": lambda n, a: n.stack([a, a]),
    "pad": lambda n, a: n.pad(a, 1),
    "pad_edge": lambda n, a: n.pad(a, 1, mode="edge"),
    "roll": lambda n, a: n.roll(a, 1),
    "flip": lambda n, a: n.flip(a),
    "ravel": lambda n, a: n.ravel(a),
    "reshape": lambda n, a: n.reshape(a, (4, 0)),
    "reshape_unknown": lambda n, a: n.reshape(a, (-1, 2)),
    "repeat": lambda n, a: n.repeat(a, 2, axis=0),
    "tile": lambda n, a: n.tile(a, (2, 1)),
    "tile_none": lambda n, a: n.tile(n.ones(2, np.float32) + n.sum(a), 0),
    "take_none": lambda n, a: n.take(n.ones(3, np.float32) + n.sum(a), np.zeros(0, np.int32)),
    "take_from_empty": lambda n, a: n.take(a, np.zeros(0, np.int32), axis=0),
    "slice_out_of_bounds": lambda n, a: n.abs(a[5:9]),
    "where": lambda n, a: n.where(a > 0, a, 1),
    "split": lambda n, a: n.split(a, 1),
    "meshgrid": lambda n, a: n.meshgrid(n.ravel(a), n.arange(2, dtype=np.float32)),
    "dot": lambda n, a: n.dot(n.ravel(a), n.ravel(a)),
    "matmul": lambda n, a: n.matmul(a.T, a),
    "outer": lambda n, a: n.outer(a, n.ones(2, np.float32)),
    "einsum": lambda n, a: n.einsum("...i,...i->...", a, a),
    "kron": lambda n, a: n.kron(a, n.ones(2, np.float32)),
    "cov": lambda n, a: n.cov(a),
    "polyval": lambda n, a: n.polyval(n.ravel(a), np.float32(2)),
    "interp": lambda n, a: n.interp(a, np.arange(2.0), np.arange(2.0)),
    "fft": lambda n, a: n.fft.fft(a),
    "convolve": lambda n, a: n.convolve(n.ravel(a), n.ones(2, np.float32)),
}


NO_REFUSAL = deviation(
    params=["fft"],
    outcome="ok",
    reason="the transform of no elements has no elements; NumPy refuses it",
    issue="jax-ml/jax@ff637e12f145",
)
NO_MEDIAN = deviation(
    params=["median"],
    outcome="ok",
    reason="it is refused, where NumPy returns NaN",
    issue="jax-ml/jax@ff637e12f145",
)


ZERO_COVARIANCE = deviation(
    "jax<0.8",
    params=["cov"],
    outcome="ok",
    reason="the covariance of no observations was -0.0, not NaN",
    issue="jax-ml/jax@cd7045018839",
)


NO_QUANTILE = deviation(
    "jax<0.11.1",
    params=["nanquantile"],
    outcome="ok",
    reason="a gather from no elements was refused",
    issue="jax-ml/jax#39468",
)


@probe(
    params=[*FUNCTIONS],
    deviations=[NO_REFUSAL, NO_MEDIAN, ZERO_COVARIANCE, NO_QUANTILE],
)
def function(env, name):
    """A function of empty arrays has the shape, the elements and the refusals of NumPy."""
    return compare(FUNCTIONS[name])


MATRICES = {
    "det": lambda n, a: n.linalg.det(a),
    "inv": lambda n, a: n.linalg.inv(a),
    "solve": lambda n, a: n.linalg.solve(a, a),
    "cholesky": lambda n, a: n.linalg.cholesky(a),
    "eigvalsh": lambda n, a: n.linalg.eigvalsh(a),
    "svd": lambda n, a: n.linalg.svd(a, compute_uv=False),
    "qr": lambda n, a: n.linalg.qr(a),
    "matrix_power": lambda n, a: n.linalg.matrix_power(a, 3),
    "pinv": lambda n, a: n.linalg.pinv(a),
    "slogdet": lambda n, a: n.linalg.slogdet(a),
    "trace": lambda n, a: n.trace(a),
}


@probe(params=[*MATRICES])
def linear_algebra(env, name):
    """A function of a matrix of 0 x 0 has the result or the refusal of NumPy."""
    return compare(MATRICES[name], SQUARE)
