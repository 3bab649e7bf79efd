"""What the topics of this family share: arrays put on meshes, and how a spec is told."""

from __future__ import annotations

import jax
import numpy as np
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

SHARDS = 4


def numbers(*shape):
    """Return 0, 1, 2, ... in a shape, as float32."""
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


def put(mesh, value, *spec):
    """Return an array put on a mesh, sharded as the spec says."""
    return jax.device_put(value, NamedSharding(mesh, P(*spec)))


def spec_of(array):
    """Return the PartitionSpec of an array's sharding as text, without trailing Nones."""
    entries = [*array.sharding.spec]
    while entries and entries[-1] is None:
        entries.pop()
    return str(entries)


def said(call, words=12):
    """Return the class of what a call raises, and its first words; what it returns else."""
    try:
        return str(call())
    except Exception as error:  # noqa: BLE001 - whichever class it is, is what is asked
        return " ".join([f"{type(error).__name__}:", *str(error).split()[:words]])
