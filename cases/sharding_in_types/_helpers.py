"""Helpers for this family: arrays on meshes, specs as text, and outcomes of calls."""

from __future__ import annotations

import importlib

import jax
import numpy as np
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

SHARDS = 4


def numbers(*shape):
    """Return 0, 1, 2, ... in a shape, as float32."""
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


def put(mesh, value, *spec):
    """Return an array on a mesh, sharded by the entries of a spec."""
    return jax.device_put(value, NamedSharding(mesh, P(*spec)))


def reshard(x, spec):
    """Return an array with another spec; JAX had the function in three modules."""
    owners = [module for module in (jax, jax.sharding) if hasattr(module, "reshard")]
    owner = owners[0] if owners else importlib.import_module("jax.experimental.shard")
    return owner.reshard(x, spec)


def format_spec(array):
    """Return the PartitionSpec of an array's sharding as text, without trailing Nones."""
    entries = [*array.sharding.spec]
    while entries and entries[-1] is None:
        entries.pop()
    return str(entries)


def describe_outcome(call, words=12):
    """Return the result of a call as text, or the class and the first words of its error."""
    try:
        return str(call())
    except Exception as error:  # noqa: BLE001 - the class is part of the observation
        return " ".join([f"{type(error).__name__}:", *str(error).split()[:words]])
