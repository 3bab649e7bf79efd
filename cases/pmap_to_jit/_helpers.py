"""What the topics of this family share: a small batch, and words for where an array lies."""

from __future__ import annotations

import jax
import numpy as np

from conformance.kit import Observed

DEVICES = 4


def rows():
    """Return eight numbers as four rows, one for each device."""
    return np.arange(8, dtype=np.float32).reshape(DEVICES, 2)


def mapped(env, f, **keywords):
    """Return `f` under `pmap` over the axis `i` of the first four devices."""
    return jax.pmap(f, axis_name="i", devices=env.devices[:DEVICES], **keywords)


def ids(array):
    """Return the ids of the devices that hold an array."""
    return sorted(device.id for device in array.devices())


def layout(array):
    """Return the class of an array's sharding, its PartitionSpec as a list, a shard's shape."""
    spec = getattr(array.sharding, "spec", None)
    return {
        "sharding": type(array.sharding).__name__,
        "spec": "none" if spec is None else str([*spec]),
        "shard": list(array.addressable_shards[0].data.shape),
    }


def observed(value, reference):
    """Return an observation of NumPy arrays.

    Where its arrays lie is what a case says itself; up to 0.4.33 a pmap's array tells the rows of
    its shards as integers, which is not how other arrays do.
    """
    held = jax.tree_util.tree_map(
        lambda leaf: np.asarray(leaf) if isinstance(leaf, jax.Array) else leaf, value
    )
    return Observed(held, reference)
