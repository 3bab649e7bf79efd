"""What the topics of this family share: the mapping, and what a value inside it varies over."""

from __future__ import annotations

import jax
import numpy as np
from jax.sharding import PartitionSpec as P

SHARDS = 4
ROWS = P("x")


def ramp(size=8):
    """Return 0, 1, 2, ... as float32."""
    return np.arange(size, dtype=np.float32)


def mapped(env, f, in_specs=ROWS, out_specs=ROWS, *, check=True):
    """Return `f` mapped over a mesh of four devices along axis `x`."""
    mesh = env.mesh(SHARDS, "x")
    return env.compat.shard_map(f, mesh=mesh, in_specs=in_specs, out_specs=out_specs, check=check)


def named(axes):
    """Return a set of axes as text, in the order of their names; "none" for no axis."""
    return ", ".join(sorted(axes)) or "none"


def varying(env, value):
    """Return the names of the axes that a traced value varies over, as text."""
    kind = env.compat.typeof(value)
    manual = getattr(kind, "manual_axis_type", None)
    return named(kind.vma if manual is None else manual.varying)


def inside(env, look, *args, in_specs=ROWS, check=True, mesh=None):
    """Return what `look` returns of the shards of the arguments; only traced, never run."""
    seen = []

    def body(*shards):
        seen.append(look(*shards))
        return shards[0]

    first = in_specs if isinstance(in_specs, P) else in_specs[0]
    where = env.mesh(SHARDS, "x") if mesh is None else mesh
    f = env.compat.shard_map(body, mesh=where, in_specs=in_specs, out_specs=first, check=check)
    jax.eval_shape(f, *args)
    return seen[0]
