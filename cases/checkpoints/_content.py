"""The objects and trees that `_write.py` stores, and that every release restores."""

from __future__ import annotations

import difflib

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

SHAPE = (4, 2)
CONTAINERS = {"a": [1, (2, None)], "b": {}, "c": difflib.Match(3, 4, 5)}
"""A tree with lists, tuples, None, an empty dictionary, and a named tuple."""


def numbers(dtype="float32"):
    """Return the numbers 0 to 7 as an array of shape [4, 2] in NumPy, of a dtype that jax knows."""
    return np.arange(8).reshape(SHAPE).astype(jnp.dtype(dtype))


def make_key():
    """Return a typed threefry key, made without running a program."""
    return jax.random.wrap_key_data(np.array([1, 2], np.uint32), impl="threefry2x32")


def make_spec():
    """Return a PartitionSpec with an axis, a tuple of axes, and None."""
    return P("x", ("y", "z"), None)


def make_abstract_mesh():
    """Return the AbstractMesh of a mesh of one device."""
    return Mesh(np.array(jax.devices()[:1]).reshape(1, 1), ("x", "y")).abstract_mesh


def make_paths():
    """Return the key path of each leaf of a tree."""
    return [path for path, _ in jax.tree_util.tree_flatten_with_path(CONTAINERS)[0]]


def make_treedef():
    """Return the structure of a tree of builtin containers."""
    return jax.tree_util.tree_structure({"a": [1, (2, None)], "b": {}})


PICKLED = {
    "array": lambda: jax.device_put(numbers()),
    "bfloat16": lambda: jax.device_put(numbers("bfloat16")),
    "float8_e4m3fn": lambda: jax.device_put(numbers("float8_e4m3fn")),
    "int4": lambda: jax.device_put(numbers("int4")),
    "key": make_key,
    "PartitionSpec": make_spec,
    "PartitionSpec_unconstrained": lambda: P(P.UNCONSTRAINED, "x"),
    "AbstractMesh": make_abstract_mesh,
    "ShapeDtypeStruct": lambda: jax.ShapeDtypeStruct((2, 3), jnp.float32),
    "PyTreeDef": make_treedef,
    "PyTreeDef_named_tuple": lambda: jax.tree_util.tree_structure(CONTAINERS),
    "key_paths": make_paths,
    "Precision": lambda: jax.lax.Precision.HIGHEST,
    "AxisType": lambda: jax.sharding.AxisType.Explicit,
    "GatherDimensionNumbers": lambda: jax.lax.GatherDimensionNumbers((0,), (0,), (0,)),
}
"""Objects that are pickled, by name."""


def make_state(mesh):
    """Return the state of a training run: arrays of several dtypes, one of them split.

    Args:
        mesh: Mesh with an axis `x`, over which the rows of the kernel are split.
    """
    kernel = jax.device_put(numbers(), NamedSharding(mesh, P("x")))
    return {
        "params": {"kernel": kernel, "bias": jax.device_put(numbers("bfloat16"))},
        "counts": [jax.device_put(numbers("int32")), jax.device_put(numbers("bool"))],
        "nothing": None,
        "key_data": jax.random.key_data(make_key()),
        "step": 7,
    }


def make_target():
    """Return the state of `make_state` in NumPy."""
    return {
        "params": {"kernel": numbers(), "bias": numbers("bfloat16")},
        "counts": [numbers("int32"), numbers("bool")],
        "nothing": None,
        "key_data": np.array([1, 2], np.uint32),
        "step": 7,
    }
