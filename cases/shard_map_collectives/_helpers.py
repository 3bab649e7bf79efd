"""Helpers for this family: the mapping, the arrays, and each collective with its NumPy twin."""

from __future__ import annotations

import numpy as np
from jax import lax
from jax.sharding import PartitionSpec as P

SHARDS = 4
RING = [(i, (i + 1) % SHARDS) for i in range(SHARDS)]


def map_shards(env, f, in_specs, out_specs, *, check=True, mesh=None, manual=None):
    """Return `f` mapped over four devices along axis `x`, or over another mesh.

    Args:
        env: Environment of the case.
        f: Function of the shards.
        in_specs: As for shard_map.
        out_specs: As for shard_map.
        check: Whether replication (variance) is checked.
        mesh: Mesh in place of the four devices.
        manual: Axes made manual; None for all axes of the mesh.
    """
    mesh = env.mesh(SHARDS, "x") if mesh is None else mesh
    return env.compat.shard_map(
        f, mesh=mesh, in_specs=in_specs, out_specs=out_specs, check=check, axis_names=manual
    )


def square_mesh(env):
    """Return a mesh of two by two devices, axes `a` and `b`."""
    return env.mesh((2, 2), ("a", "b"))


def numbers(env, *shape, seed=0):
    """Return small integers as float32: their sums and products are exact."""
    return env.rng(seed).integers(1, 9, size=shape).astype(np.float32)


def shards_of(x, count=SHARDS):
    """Return the shards of an array along its first axis, in float64."""
    return np.asarray(x, np.float64).reshape(count, -1, *np.shape(x)[1:])


COLLECTIVES = {
    "psum": lambda x: lax.psum(x, "x"),
    "pmean": lambda x: lax.pmean(x, "x"),
    "all_gather": lambda x: lax.all_gather(x, "x", tiled=True),
    "psum_scatter": lambda x: lax.psum_scatter(x, "x", tiled=True),
    "ppermute": lambda x: lax.ppermute(x, "x", RING),
    "all_to_all": lambda x: lax.all_to_all(x, "x", 0, 0, tiled=True),
    "pmax": lambda x: lax.pmax(x, "x"),
}
"""Collectives over axis `x`, each linear except the last."""


def compute_shards(op, x):
    """Return the shards after a collective, concatenated in their order, in float64.

    Args:
        op: Name of a collective in `COLLECTIVES`.
        x: The whole array; shards lie along its first axis.
    """
    parts = shards_of(x)
    blocks = parts.reshape(SHARDS, SHARDS, -1, *parts.shape[2:]) if op in BLOCKWISE else None
    return {
        "psum": lambda: np.concatenate([parts.sum(0)] * SHARDS),
        "pmean": lambda: np.concatenate([parts.mean(0)] * SHARDS),
        "pmax": lambda: np.concatenate([parts.max(0)] * SHARDS),
        "all_gather": lambda: np.concatenate([np.concatenate(parts)] * SHARDS),
        "psum_scatter": lambda: np.concatenate(blocks.sum(0)),
        "ppermute": lambda: np.concatenate(np.roll(parts, 1, axis=0)),
        "all_to_all": lambda: np.concatenate(np.concatenate(blocks.swapaxes(0, 1))),
    }[op]()


BLOCKWISE = ("psum_scatter", "all_to_all")


def matrix_of(op, n):
    """Return a linear collective as a matrix on all `n` numbers, column by column."""
    return np.stack([compute_shards(op, unit) for unit in np.eye(n)], axis=1)


def map_collective(env, op, *, check=True):
    """Return a collective mapped so that the result of every shard is visible."""

    def body(x):
        return COLLECTIVES[op](x)

    return map_shards(env, body, P("x"), P("x"), check=check)
