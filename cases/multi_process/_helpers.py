"""What the topics of this family share: arrays that no process holds alone."""

from __future__ import annotations

import jax
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

SHARDS = 4


def numbers(env, *shape, seed=0):
    """Return small integers as float32, the same in each process."""
    return env.rng(seed).integers(1, 9, size=shape).astype(np.float32)


def split(env):
    """Return the sharding that splits a first dimension over all devices of all processes."""
    return NamedSharding(env.mesh(SHARDS, "x"), P("x"))


def spread(env, whole, sharding=None):
    """Return an array of which each process holds its part."""
    sharding = split(env) if sharding is None else sharding
    return jax.make_array_from_callback(whole.shape, sharding, lambda index: whole[index])


def mapped(env, f, in_specs, out_specs, *, check=True, mesh=None):
    """Return `f` mapped over the devices of both processes, along axis `x` or over `mesh`."""
    mesh = env.mesh(SHARDS, "x") if mesh is None else mesh
    return env.compat.shard_map(f, mesh=mesh, in_specs=in_specs, out_specs=out_specs, check=check)


def of_all(own):
    """Return what each process has, stacked: the same in each of them."""
    return np.asarray(multihost_utils.process_allgather(np.asarray(own)))
