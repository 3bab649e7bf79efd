"""Helpers for this family: shard_map over an axis, and the axes that a value varies over."""

from __future__ import annotations

import jax
import numpy as np
from jax.sharding import PartitionSpec as P

SHARDS = 4
ROWS = P("x")


def ramp(size=8):
    """Return 0, 1, 2, ... as float32."""
    return np.arange(size, dtype=np.float32)


def map_over_x(env, f, in_specs=ROWS, out_specs=ROWS, *, check=True):
    """Return `f` mapped over a mesh of four devices along axis `x`."""
    mesh = env.mesh(SHARDS, "x")
    return env.compat.shard_map(f, mesh=mesh, in_specs=in_specs, out_specs=out_specs, check=check)


def format_axes(axes):
    """Return a set of axes as text, in the order of their names; "none" for the empty set."""
    return ", ".join(sorted(axes)) or "none"


def find_varying_axes(env, value):
    """Return the names of the axes that a traced value varies over, as text."""
    kind = env.compat.typeof(value)
    manual = getattr(kind, "manual_axis_type", None)
    return format_axes(kind.vma if manual is None else manual.varying)


def trace_shard(env, look, *args, in_specs=ROWS, check=True, mesh=None):
    """Return the result of `look` for the shards of the arguments; only traced, never run."""
    results = []

    def body(*shards):
        results.append(look(*shards))
        return shards[0]

    first = in_specs if isinstance(in_specs, P) else in_specs[0]
    where = env.mesh(SHARDS, "x") if mesh is None else mesh
    f = env.compat.shard_map(body, mesh=where, in_specs=in_specs, out_specs=first, check=check)
    jax.eval_shape(f, *args)
    return results[0]
