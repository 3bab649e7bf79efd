"""Slices, gathers, reshapes and masks of a sharded matrix."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from conformance.kit import defaults, deviation, probe

from ._helpers import INDICES, SIZE, Operation, compare, numpy_api, operators

defaults(devices=8, platforms=("cpu",), xla_flags=["--xla_backend_optimization_level=0"])

OPERATIONS = {
    "row": operators(lambda a: a[3]),
    "last_row": operators(lambda a: a[-1]),
    "column": operators(lambda a: a[:, 5]),
    "slice_even": operators(lambda a: a[2:6]),
    "slice_uneven": operators(lambda a: a[1:6]),
    "slice_uneven_columns": operators(lambda a: a[:, 3:]),
    "slice_stride_2": operators(lambda a: a[::2]),
    "slice_stride_3": operators(lambda a: a[1::3]),
    "reverse": operators(lambda a: a[::-1]),
    "flip": numpy_api(lambda n, a: n.flip(a)),
    "dynamic_slice": Operation(
        lambda a: lax.dynamic_slice(a, (np.int32(3), np.int32(2)), (4, 5)),
        lambda a: a[3:7, 2:7],
    ),
    "gather_rows": operators(lambda a: a[INDICES]),
    "take_columns": numpy_api(lambda n, a: n.take(a, INDICES, axis=1)),
    "gather_elements": operators(lambda a: a[INDICES, INDICES[::-1]]),
    "take_along_axis": numpy_api(lambda n, a: n.take_along_axis(a, n.argsort(a, 0), 0)),
    "diagonal": numpy_api(lambda n, a: n.diagonal(a)),
    "tril": numpy_api(lambda n, a: n.tril(a)),
    "triu_indices": operators(lambda a: a[np.triu_indices(SIZE)]),
    "where": numpy_api(lambda n, a: n.where(a > 1, a, -a[::-1])),
    "nonzero": Operation(
        lambda a: jnp.nonzero(a > 1.2, size=50, fill_value=-1)[0],
        lambda a: np.pad(np.nonzero(a > 1.2)[0], (0, 50 - (a > 1.2).sum()), constant_values=-1),
    ),
    "transpose": operators(lambda a: a.T),
    "ravel": operators(lambda a: a.reshape(-1)),
    "reshape_splits_axis": operators(lambda a: a.reshape(2, 4, SIZE).swapaxes(0, 2)),
    "reshape_merges_axes": operators(lambda a: a.reshape(16, 4)),
    "rot90": numpy_api(lambda n, a: n.rot90(a)),
    "select_n": Operation(
        lambda a: lax.select_n((a > 1).astype(np.int32), a, -a),
        lambda a: np.where(a > 1, -a, a),
    ),
    "one_hot_product": Operation(
        lambda a: jax.nn.one_hot(INDICES, SIZE) @ a,
        lambda a: a[INDICES],
    ),
}


UNEVEN_RESULT_REFUSED = deviation(
    "jax>=0.9.1,<0.10",
    params=["reshape_splits_axis"],
    outcome="ok",
    match="IndivisibleError",
    reason="a result for which XLA chose shards of different sizes was refused",
    issue="jax-ml/jax@822e9a7cc31e",
)


@probe(source="jax-ml/jax#18434", params=[*OPERATIONS], deviations=[UNEVEN_RESULT_REFUSED])
def indexed(env, name):
    """A slice, gather or reshape of a sharded matrix equals NumPy."""
    return compare(env, OPERATIONS[name])
