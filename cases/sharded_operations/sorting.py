"""Sorts, orders and quantiles of a sharded matrix."""

from __future__ import annotations

import numpy as np
from jax import lax

from conformance.kit import defaults, probe

from ._helpers import Operation, compare, numpy_api

defaults(devices=8, platforms=("cpu",), xla_flags=["--xla_backend_optimization_level=0"])

EDGES = np.array([0.7, 1.0, 1.6], np.float32)
OPERATIONS = {
    "sort_rows": numpy_api(lambda n, a: n.sort(a, axis=0)),
    "sort_columns": numpy_api(lambda n, a: n.sort(a, axis=1)),
    "sort_flat": numpy_api(lambda n, a: n.sort(a, axis=None)),
    "argsort": numpy_api(lambda n, a: n.argsort(a, axis=0)),
    "lexsort": numpy_api(lambda n, a: n.lexsort((a[0], a[1] > 1))),
    "top_k": Operation(
        lambda a: lax.top_k(a, 3)[0],
        lambda a: np.sort(a, axis=1)[:, :-4:-1],
    ),
    "top_k_indices": Operation(
        lambda a: lax.top_k(a.T, 3)[1],
        lambda a: np.argsort(-a.T, axis=1)[:, :3],
    ),
    "median": numpy_api(lambda n, a: n.median(a, axis=0)),
    "searchsorted": numpy_api(lambda n, a: n.searchsorted(n.sort(a[:, 0]), a[:, 1])),
    "digitize": numpy_api(lambda n, a: n.digitize(a, EDGES)),
    "histogram": numpy_api(lambda n, a: n.histogram(a, 5, (0, 2))[0].astype(np.float32)),
}


@probe(source="jax-ml/jax#18434", params=[*OPERATIONS])
def ordered(env, name):
    """A sort, order or quantile of a sharded matrix equals NumPy."""
    return compare(env, OPERATIONS[name], eager=False)
