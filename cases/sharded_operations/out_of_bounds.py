"""Dynamic slices and updates of sharded arrays at a start out of bounds, which is moved."""

from __future__ import annotations

import numpy as np
from jax import lax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from conformance.kit import Program, defaults, deviation, program

defaults(devices=4, platforms=("cpu",))

STARTS = {"before": {"start": -5}, "inside": {"start": 3}, "after": {"start": 9}}


def move(start):
    """Return the index that a start means in an axis of eight: the nearest one within it."""
    return min(max(int(start) + 8 * (start < 0), 0), 7)


def put_matrix(env, devices):
    """Return a matrix of 2 x 8 whose columns are sharded."""
    columns = NamedSharding(env.mesh(devices, "x"), P(None, "x"))
    return env.put(np.arange(16, dtype=np.int32).reshape(2, 8), columns)


ELEMENT_LOST = deviation(
    "jax>=0.4.30",
    params=["after"],
    outcome="ok",
    reason="no shard has the index that was given, so that the update is lost",
    issue="openxla/xla#49118",
)


@program(source="openxla/xla#49118", params=STARTS, deviations=[ELEMENT_LOST])
def element_at_an_index(env, start):
    """`dynamic_update_index_in_dim` of a sharded vector moves an index past the end to the end."""
    vector = env.put(np.arange(8, dtype=np.float32), NamedSharding(env.mesh(4, "x"), P("x")))

    def reference(a, i):
        out = a.copy()
        out[move(i)] = 9
        return out

    return Program(
        lambda a, i: lax.dynamic_update_index_in_dim(a, np.float32(9), i, 0),
        (vector, np.int32(start)),
        reference=reference,
    )


COLUMN_LOST = deviation(
    "jax>=0.4.30",
    params=["after"],
    outcome="ok",
    reason="no shard has the start that was given, so that the update is lost",
    issue="openxla/xla#49118",
)


@program(source="openxla/xla#49118", params=STARTS, deviations=[COLUMN_LOST])
def column_at_a_start(env, start):
    """`dynamic_update_slice` of a column moves a start past the last column to the last."""
    matrix = put_matrix(env, 4)

    def reference(a, b, i):
        out = a.copy()
        out[:, move(i)] = b[:, 0]
        return out

    return Program(
        lambda a, b, i: lax.dynamic_update_slice(a, b, (0, i)),
        (matrix, np.full((2, 1), 99, np.int32), np.int32(start)),
        jit={"out_shardings": matrix.sharding},
        reference=reference,
    )


WINDOW_REPEATED = deviation(
    "jax<0.12",
    params=["after"],
    outcome="ok",
    reason="each shard moved the start on its own, so that all had the last columns",
    issue="openxla/xla#49122",
)


@program(
    source="openxla/xla#49122",
    devices=2,
    params={"inside": {"start": 1}, "after": {"start": 7}},
    deviations=[WINDOW_REPEATED],
)
def window_at_a_start(env, start):
    """`dynamic_slice` to a sharded window moves a start so that the window is in the matrix."""
    matrix = put_matrix(env, 2)

    def reference(a, i):
        first = min(int(i), 2)
        return a[:, first : first + 6]

    return Program(
        lambda a, i: lax.dynamic_slice(a, (0, i), (2, 6)),
        (matrix, np.int32(start)),
        jit={"out_shardings": matrix.sharding},
        reference=reference,
    )
