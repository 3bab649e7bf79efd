"""Concatenation, stacking, padding and rolling of a sharded matrix.

Each shard of the result has elements of several shards of the operands.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax import lax

from conformance.kit import defaults, deviation, probe

from ._helpers import Operation, compare, numpy_api

defaults(devices=8, platforms=("cpu",), xla_flags=["--xla_backend_optimization_level=0"])

REPEATS = np.array([1, 2, 0, 1, 3, 1, 0, 2])
OPERATIONS = {
    "concatenate_rows": numpy_api(lambda n, a: n.concatenate([a, 2 * a])),
    "concatenate_columns": numpy_api(lambda n, a: n.concatenate([a, 2 * a], axis=1)),
    "concatenate_half_and_whole": numpy_api(lambda n, a: n.concatenate([a[:4], a])),
    "concatenate_last_row_and_rest": numpy_api(lambda n, a: n.concatenate([a[-1:], a[:-1]])),
    "concatenate_halo": numpy_api(lambda n, a: n.concatenate([a[-2:], a, a[:2]])),
    "concatenate_vectors": numpy_api(lambda n, a: n.concatenate([a[0], a[1], a[:, 2]])),
    "stack": numpy_api(lambda n, a: n.stack([a, a + 1])),
    "stack_last_axis": numpy_api(lambda n, a: n.stack([a, a + 1], axis=2)),
    "hstack": numpy_api(lambda n, a: n.hstack([a, a[:, :3]])),
    "append": numpy_api(lambda n, a: n.append(a, a[0])),
    "delete": numpy_api(lambda n, a: n.delete(a, 3, axis=0)),
    "block": numpy_api(lambda n, a: n.block([[a, a[:, :2]], [a[:2], a[:2, :2]]])),
    "pad": numpy_api(lambda n, a: n.pad(a, 1)),
    "pad_edge": numpy_api(lambda n, a: n.pad(a, ((2, 1), (0, 3)), mode="edge")),
    "pad_wrap": numpy_api(lambda n, a: n.pad(a, 2, mode="wrap")),
    "pad_reflect": numpy_api(lambda n, a: n.pad(a, ((1, 2), (0, 0)), mode="reflect")),
    "pad_negative": Operation(
        lambda a: lax.pad(a, np.float32(0), ((-1, -2, 0), (2, 1, 0))),
        lambda a: np.pad(a[1:-2], ((0, 0), (2, 1))),
    ),
    "pad_interior": Operation(
        lambda a: lax.pad(a, np.float32(0), ((0, 0, 1), (1, 0, 0))),
        lambda a: np.pad(np.insert(a, np.arange(1, 8), 0, axis=0), ((0, 0), (1, 0))),
    ),
    "roll_rows": numpy_api(lambda n, a: n.roll(a, 3, axis=0)),
    "roll_columns": numpy_api(lambda n, a: n.roll(a, -1, axis=1)),
    "roll_both_axes": numpy_api(lambda n, a: n.roll(a, (1, 2), axis=(0, 1))),
    "tile": numpy_api(lambda n, a: n.tile(a, (2, 1))),
    "repeat": numpy_api(lambda n, a: n.repeat(a, 2, axis=0)),
    "repeat_by_row": Operation(
        lambda a: jnp.repeat(a, REPEATS, axis=0, total_repeat_length=10),
        lambda a: np.repeat(a, REPEATS, axis=0),
    ),
    "array_split": numpy_api(lambda n, a: n.array_split(a, 3)[1]),
}


ADDED_UP = deviation(
    "jax<0.5",
    params=[
        "append",
        "block",
        "concatenate_half_and_whole",
        "concatenate_halo",
        "concatenate_rows",
        "concatenate_vectors",
        "delete",
        "hstack",
        "pad_edge",
        "pad_reflect",
    ],
    outcome="ok",
    reason="copies along an axis of the mesh that the sharding does not use were added up",
    issue="jax-ml/jax#24576",
)
UNEVEN_RESULT_REFUSED = deviation(
    "jax>=0.9.1,<0.10",
    params=["array_split", "block", "pad"],
    outcome="ok",
    match="IndivisibleError",
    reason="a result for which XLA chose shards of different sizes was refused",
    issue="jax-ml/jax@822e9a7cc31e",
)


@probe(
    source="jax-ml/jax#24576",
    params=[*OPERATIONS],
    deviations=[ADDED_UP, UNEVEN_RESULT_REFUSED],
)
def joined(env, name):
    """A concatenation, padding or roll of a sharded matrix equals NumPy."""
    return compare(env, OPERATIONS[name])
