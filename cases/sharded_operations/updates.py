"""Updates of a sharded matrix: `.at[]`, chains of updates, scatters and segment sums."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from conformance.kit import defaults, deviation, probe

from ._helpers import INDICES, SIZE, Operation, compare

defaults(devices=8, platforms=("cpu",), xla_flags=["--xla_backend_optimization_level=0"])


def in_place(update):
    """Return a function that updates a copy of a matrix by `update(copy, matrix)`."""

    def run(a):
        out = a.copy()
        update(out, a)
        return out

    return run


def assign(index, value):
    """Return the operation that sets the elements at an index to `value(matrix)`."""
    reference = in_place(lambda out, a: out.__setitem__(index, value(a)))
    return Operation(lambda a: a.at[index].set(value(a)), reference)


def shift_rows(out, a):
    """Shift the rows up and set the last."""
    out[:-1] = a[1:]
    out[-1] = 1.5


def shift_columns(out, a):
    """Shift the columns to the left and set the last."""
    out[:, :-1] = a[:, 1:]
    out[:, -1] = 1.5


def swap_ends(out, a):
    """Swap the first and the last row."""
    out[0], out[-1] = a[-1], a[0]


def segment_sum(a):
    """Return the sum of the rows of each segment."""
    out = np.zeros_like(a)
    np.add.at(out, INDICES, a)
    return out


OPERATIONS = {
    "set_row": assign(2, lambda a: 0 * a[0]),
    "set_column": assign(np.s_[:, 3], lambda a: 0 * a[0]),
    "set_rows": assign(np.s_[1:4], lambda a: a[5:8]),
    "set_strided_rows": assign(np.s_[::2], lambda a: a[1::2]),
    "set_elements": assign((np.arange(SIZE), INDICES), lambda a: a[0]),
    "set_corner": assign(np.s_[5:, 5:], lambda a: a[:3, :3]),
    "shift": assign(np.s_[:-1], lambda a: a[1:]),
    "shift_then_set": Operation(
        lambda a: a.at[:-1].set(a[1:]).at[-1].set(np.full(SIZE, 1.5, np.float32)),
        in_place(shift_rows),
    ),
    "shift_columns_then_set": Operation(
        lambda a: a.at[:, :-1].set(a[:, 1:]).at[:, -1].set(np.full(SIZE, 1.5, np.float32)),
        in_place(shift_columns),
    ),
    "swap_first_and_last": Operation(
        lambda a: a.at[0].set(a[-1]).at[-1].set(a[0]), in_place(swap_ends)
    ),
    "add_to_rows": Operation(
        lambda a: a.at[INDICES].add(a),
        in_place(lambda out, a: np.add.at(out, INDICES, a)),
    ),
    "add_to_elements": Operation(
        lambda a: a.at[INDICES, INDICES].add(a[0]),
        in_place(lambda out, a: np.add.at(out, (INDICES, INDICES), a[0])),
    ),
    "add_to_strided_rows": Operation(
        lambda a: a.at[::2].add(a[1::2]),
        in_place(lambda out, a: np.add.at(out, np.s_[::2], a[1::2])),
    ),
    "multiply_rows": Operation(
        lambda a: a.at[1:3].multiply(2.0),
        in_place(lambda out, _: np.multiply.at(out, np.s_[1:3], 2.0)),
    ),
    "max_of_rows": Operation(
        lambda a: a.at[INDICES].max(a),
        in_place(lambda out, a: np.maximum.at(out, INDICES, a)),
    ),
    "min_of_columns": Operation(
        lambda a: a.at[:, INDICES].min(1.0),
        in_place(lambda out, _: np.minimum.at(out, (slice(None), INDICES), 1.0)),
    ),
    "apply_to_rows": Operation(
        lambda a: a.at[1:5].apply(jnp.sin),
        in_place(lambda out, a: out.__setitem__(np.s_[1:5], np.sin(a[1:5]))),
    ),
    "dynamic_update_slice_of_rows": Operation(
        lambda a: lax.dynamic_update_slice(a, 2 * a[:3], (np.int32(2), np.int32(0))),
        in_place(lambda out, a: out.__setitem__(np.s_[2:5], 2 * a[:3])),
    ),
    "dynamic_update_slice_of_columns": Operation(
        lambda a: lax.dynamic_update_slice(a, 2 * a[:, :3], (np.int32(0), np.int32(4))),
        in_place(lambda out, a: out.__setitem__(np.s_[:, 4:7], 2 * a[:, :3])),
    ),
    "update_in_fori_loop": Operation(
        lambda a: lax.fori_loop(0, SIZE, lambda i, c: c.at[i].set(c[i] + c[(i + 1) % SIZE]), a),
        in_place(
            lambda out, _: [out.__setitem__(i, out[i] + out[(i + 1) % SIZE]) for i in range(SIZE)]
        ),
    ),
    "segment_sum": Operation(lambda a: jax.ops.segment_sum(a, INDICES, SIZE), segment_sum),
}


LAST_ROWS_LOST = deviation(
    "jax<0.12",
    params=["shift_then_set", "shift_columns_then_set"],
    outcome="ok",
    reason="the last row of each shard but the last was that of the whole matrix",
    issue="jax-ml/jax#18434",
)
CRASHED = deviation(
    "jax<0.5",
    params=["add_to_rows", "max_of_rows"],
    outcome="crashed",
    reason="a check of the partitioner of scatters failed and ended the process",
)


@probe(source="jax-ml/jax#18434", params=[*OPERATIONS], deviations=[LAST_ROWS_LOST, CRASHED])
def updated(env, name):
    """An update of a sharded matrix equals NumPy."""
    return compare(env, OPERATIONS[name])
