"""A small batch, pmap over four devices, and descriptions of the placement of arrays."""

from __future__ import annotations

import jax
import numpy as np

from conformance.kit import Observed

DEVICES = 4


def rows():
    """Return eight numbers as four rows, one for each device."""
    return np.arange(8, dtype=np.float32).reshape(DEVICES, 2)


def map_rows(env, f, **keywords):
    """Return `f` under `pmap`, with the axis `i` over the first four devices."""
    return jax.pmap(f, axis_name="i", devices=env.devices[:DEVICES], **keywords)


def get_device_ids(array):
    """Return the ids of the devices that hold an array."""
    return sorted(device.id for device in array.devices())


def describe_layout(array):
    """Return the class of an array's sharding, its PartitionSpec as text, and a shard's shape."""
    spec = getattr(array.sharding, "spec", None)
    return {
        "sharding": type(array.sharding).__name__,
        "spec": "none" if spec is None else str([*spec]),
        "shard": list(array.addressable_shards[0].data.shape),
    }


def observe(value, reference):
    """Return an observation in which jax arrays are NumPy arrays.

    Cases report the placement of arrays explicitly: up to 0.4.33 an array of pmap gives the rows of
    its shards as integers, unlike other arrays.
    """
    converted = jax.tree_util.tree_map(
        lambda leaf: np.asarray(leaf) if isinstance(leaf, jax.Array) else leaf, value
    )
    return Observed(converted, reference)
