"""Gradients of pooling along a sharded axis: a window may lie on two shards."""

from __future__ import annotations

import jax
import numpy as np
from jax import lax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from conformance.kit import Program, defaults, deviation, program

defaults(devices=4, platforms=("cpu",))

VALUES = np.array([3, 7, 1, 6, 0, 5, 2, 4], np.float32)
WINDOWS = {
    "pairs": {"size": 2, "stride": 2, "padding": 0},
    "overlapping_pairs": {"size": 2, "stride": 1, "padding": 0},
    "overlapping_triples": {"size": 3, "stride": 1, "padding": 1},
}
OVERLAPPING = ["overlapping_pairs", "overlapping_triples"]


def count_wins(values, size, stride, padding, best):
    """Return in how many windows each value is the best."""
    padded = np.pad(values, padding, constant_values=np.nan)
    wins = np.zeros_like(padded)
    for start in range(0, padded.size - size + 1, stride):
        wins[start + best(padded[start : start + size])] += 1
    return wins[padding : padding + values.size]


LOST = deviation(
    "jax>=0.4.30",
    params=OVERLAPPING,
    outcome="ok",
    reason="a shard lacks windows that begin on the shard before it, or counts them for another "
    "value",
    issue="openxla/stablehlo#376",
)


def pool_gradient(env, values, find_best, reduce, *, size, stride, padding):
    """Return the program of the gradient of pooling, whose reference counts the wins."""
    worst = -np.inf if reduce is lax.max else np.inf

    def pool(a):
        return lax.reduce_window(a, worst, reduce, (size,), (stride,), ((padding, padding),)).sum()

    return Program(
        jax.grad(pool),
        (env.put(values, NamedSharding(env.mesh(4, "x"), P("x"))),),
        reference=lambda a: count_wins(a, size, stride, padding, find_best),
    )


@program(source="openxla/stablehlo#376", params=WINDOWS, deviations=[LOST])
def gradient_of_max_pooling(env, size, stride, padding):
    """The gradient of the sum of maxima of windows counts the windows of each value."""
    shape = {"size": size, "stride": stride, "padding": padding}
    return pool_gradient(env, VALUES, np.nanargmax, lax.max, **shape)


@program(source="openxla/stablehlo#376", params=WINDOWS, deviations=[LOST])
def gradient_of_min_pooling(env, size, stride, padding):
    """The gradient of the sum of minima of windows counts the windows of each value."""
    shape = {"size": size, "stride": stride, "padding": padding}
    return pool_gradient(env, -VALUES, np.nanargmin, lax.min, **shape)
