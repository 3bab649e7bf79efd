"""Reductions of a sharded matrix over sharded and unsharded axes."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from conformance.kit import defaults, probe

from ._helpers import Operation, compare, numpy_api

defaults(devices=8, platforms=("cpu",), xla_flags=["--xla_backend_optimization_level=0"])

OPERATIONS = {
    "sum": numpy_api(lambda n, a: n.sum(a)),
    "sum_axis_0": numpy_api(lambda n, a: n.sum(a, axis=0)),
    "sum_axis_1": numpy_api(lambda n, a: n.sum(a, axis=1)),
    "mean": numpy_api(lambda n, a: n.mean(a, axis=0)),
    "prod": numpy_api(lambda n, a: n.prod(a, axis=1)),
    "max": numpy_api(lambda n, a: n.max(a, axis=0)),
    "min": numpy_api(lambda n, a: n.min(a, axis=1)),
    "argmax": numpy_api(lambda n, a: n.argmax(a, axis=0)),
    "argmin_flat": numpy_api(lambda n, a: n.argmin(a)),
    "any": numpy_api(lambda n, a: n.any(a > 1.9, axis=0)),
    "all": numpy_api(lambda n, a: n.all(a > 0.6, axis=1)),
    "var": numpy_api(lambda n, a: n.var(a, axis=0)),
    "logsumexp": Operation(
        lambda a: jax.nn.logsumexp(a, axis=0),
        lambda a: np.log(np.exp(a).sum(0)),
    ),
    "softmax": Operation(
        lambda a: jax.nn.softmax(a, axis=0),
        lambda a: np.exp(a) / np.exp(a).sum(0),
    ),
    "count_nonzero": numpy_api(lambda n, a: n.count_nonzero(a > 1, axis=0)),
    "sum_int32": numpy_api(lambda n, a: n.sum((100 * a).astype(np.int32), axis=1)),
    "sum_bfloat16": Operation(
        lambda a: (a > 1).astype(jnp.bfloat16).sum(0).astype(np.float32),
        lambda a: (a > 1).sum(0).astype(np.float32),
    ),
    "sum_complex": numpy_api(lambda n, a: n.abs(n.sum(a + 1j * a[::-1], axis=0))),
    "reduce_window_sum": Operation(
        lambda a: lax.reduce_window(a, 0.0, lax.add, (3, 3), (1, 1), "SAME"),
        lambda a: sum(np.pad(a, 1)[i : i + 8, j : j + 8] for i in range(3) for j in range(3)),
    ),
    "reduce_window_max": Operation(
        lambda a: lax.reduce_window(a, -np.inf, lax.max, (2, 2), (2, 2), "VALID"),
        lambda a: a.reshape(4, 2, 4, 2).max((1, 3)),
    ),
}


@probe(source="jax-ml/jax#21403", params=[*OPERATIONS])
def reduced(env, name):
    """A reduction of a sharded matrix equals NumPy."""
    return compare(env, OPERATIONS[name])
