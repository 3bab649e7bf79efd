"""Arrays that no process holds alone, for all topics of this family."""

from __future__ import annotations

import jax
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

SHARDS = 4


def draw_integers(env, *shape, seed=0):
    """Return small integers as float32, the same in each process."""
    return env.rng(seed).integers(1, 9, size=shape).astype(np.float32)


def make_split_sharding(env):
    """Return the sharding that splits the first dimension over all devices of all processes."""
    return NamedSharding(env.mesh(SHARDS, "x"), P("x"))


def make_spread_array(env, whole, sharding=None):
    """Return an array of which each process holds its part."""
    sharding = make_split_sharding(env) if sharding is None else sharding
    return jax.make_array_from_callback(whole.shape, sharding, lambda index: whole[index])


def map_over_devices(env, f, in_specs, out_specs, *, check=True, mesh=None):
    """Return `f` mapped over the devices of both processes, along axis `x` or over `mesh`."""
    mesh = env.mesh(SHARDS, "x") if mesh is None else mesh
    return env.compat.shard_map(f, mesh=mesh, in_specs=in_specs, out_specs=out_specs, check=check)


def gather_values(value):
    """Return the values of all processes, stacked; every process gets the same result."""
    return np.asarray(multihost_utils.process_allgather(np.asarray(value)))
