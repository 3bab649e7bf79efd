"""Four shards of four numbers each, mapped with the check on or off."""

from __future__ import annotations

import jax
import numpy as np
from jax.sharding import PartitionSpec as P

SHARDS = 4
SIZE = 16
SPLIT = P("x")


def numbers(env, low=0.5, high=1.5):
    """Return sixteen float32 numbers, away from zero, in random order."""
    return (low + (high - low) * env.rng(11).random(SIZE)).astype(np.float32)


def map_shards(env, fn, in_specs=SPLIT, out_specs=SPLIT, *, check=True):
    """Return a function mapped over four devices along axis `x`."""
    mesh = env.mesh(SHARDS, "x")
    return env.compat.shard_map(fn, mesh=mesh, in_specs=in_specs, out_specs=out_specs, check=check)


def call_mapped(env, fn, *args, in_specs=SPLIT, out_specs=SPLIT, check=True):
    """Return the result of the mapped function under jit."""
    return jax.jit(map_shards(env, fn, in_specs, out_specs, check=check))(*args)


def apply_by_shard(fn, *args):
    """Return the results of a NumPy function for each quarter of its arguments, concatenated."""
    parts = zip(*(np.split(np.asarray(a, np.float64), SHARDS) for a in args), strict=True)
    return np.concatenate([np.asarray(fn(*part)) for part in parts])
