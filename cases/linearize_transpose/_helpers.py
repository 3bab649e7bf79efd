"""Helpers for this family: the mapping, and a small regression problem."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

SHARDS = 4


def map_over_x(env, f, in_specs, out_specs, *, check=True):
    """Return `f` mapped over a mesh of four devices along axis `x`."""
    mesh = env.mesh(SHARDS, "x")
    return env.compat.shard_map(f, mesh=mesh, in_specs=in_specs, out_specs=out_specs, check=check)


def regression(env):
    """Return parameters `w`, inputs `x` and targets `y`: eight rows, two for each shard."""
    rng = env.rng(7)
    w = rng.normal(size=3).astype(np.float32)
    x = rng.normal(size=(8, 3)).astype(np.float32)
    y = rng.normal(size=8).astype(np.float32)
    return w, x, y


def loss(w, x, y):
    """Return the mean squared error of a linear model.

    Shards of equal size make the mean of their losses the global mean.
    """
    return jnp.mean((x @ w - y) ** 2)


def exact_gradient(w, x, y):
    """Return the gradient of `loss` over all rows, in float64."""
    w, x, y = (np.asarray(a, np.float64) for a in (w, x, y))
    return 2 * x.T @ (x @ w - y) / len(y)
