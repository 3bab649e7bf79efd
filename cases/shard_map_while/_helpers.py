"""A one-dimensional periodic conservation law on a sharded grid, and its NumPy twin."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import PartitionSpec as P  # noqa: F401 - imported by the topics

SHARDS = 4
CELLS = 16
CFL = 0.4


def wave(env, low=1.0):
    """Return a positive float32 profile, away from zero so that relative tolerances mean much."""
    x = (np.arange(CELLS) + 0.5) / CELLS
    noise = 0.05 * env.rng(0).random(CELLS)
    return (low + 1.0 + np.sin(2 * np.pi * x) + noise).astype(np.float32)


def from_left(u, axis="x", shards=SHARDS):
    """Return the left neighbour of every cell; the halo comes from the shard on the left."""
    halo = lax.ppermute(u[-1:], axis, [(i, (i + 1) % shards) for i in range(shards)])
    return jnp.concatenate([halo, u[:-1]])


def upwind(u, left, dt):
    """Return Burgers' equation advanced by one explicit step; works on jax and NumPy arrays."""
    return u - dt * CELLS * (u * u - left * left) / 2


def stable_step(u):
    """Return the CFL limit of the given cells: a shard inside shard_map, all cells outside."""
    return CFL / (CELLS * abs(u).max())


def numpy_upwind(u, end):
    """Advance all cells to time `end` in float64.

    Returns:
        Time reached, cells, number of steps.
    """
    t, u, steps = 0.0, np.asarray(u, np.float64), 0
    while t < end:
        dt = min(stable_step(u), end - t)
        t, u, steps = t + dt, upwind(u, np.roll(u, 1), dt), steps + 1
    return np.float32(t), u.astype(np.float32), np.int64(steps)
