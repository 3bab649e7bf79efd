"""Arrays in `.npz` files, and arrays stored with TensorStore.

`jax.experimental.array_serialization` stores an array as a Zarr array of its shards. Restoring
takes a sharding, which need not be that of the writer.
"""

from __future__ import annotations

import io
import tempfile
import warnings
from pathlib import Path

import jax
import numpy as np
from jax.experimental.array_serialization import serialization as arrays
from jax.sharding import Mesh, NamedSharding, SingleDeviceSharding
from jax.sharding import PartitionSpec as P

from conformance.kit import Observed, defaults, probe

from ._content import make_key, make_target, numbers
from ._loading import EQUAL, compare, compare_trees, extract, list_writers, outcome, read_file

defaults(platforms=("cpu",), requires=["tensorstore"])

DTYPES = ("float32", "bfloat16", "float8_e4m3fn", "float8_e5m2", "int4", "bool", "complex64")


def store(named, folder):
    """Store arrays by name below a folder with TensorStore, and return their specifications."""
    specs = {name: arrays.get_tensorstore_spec(str(Path(folder) / name)) for name in named}
    arrays.run_serialization(list(named.values()), list(specs.values()))
    return specs


def restore(spec, sharding, **keywords):
    """Return an array that TensorStore reads, with a sharding."""
    (array,) = arrays.run_deserialization([sharding], [spec], **keywords)
    return array


@probe(source="jax-ml/jax@67bf8f9d50bc")
def tensorstore_dtypes(env):
    """An array that TensorStore restores has the dtype and bits of the original.

    The reference says of uint4 and of typed keys that they are refused, as of all releases: neither
    is a dtype of TensorStore.
    """
    device = SingleDeviceSharding(jax.devices()[0])
    named = {dtype: jax.device_put(numbers(dtype)) for dtype in DTYPES}
    with tempfile.TemporaryDirectory() as folder:
        specs = store(named, folder)
        restored = arrays.run_deserialization([device] * len(named), list(specs.values()))
        observed = {
            dtype: compare(array, named[dtype])
            for dtype, array in zip(named, restored, strict=True)
        }
        others = {"uint4": jax.device_put(numbers("uint4")), "key": make_key()}
        for name, array in others.items():
            call = outcome(lambda name=name, array=array: store({name: array}, folder))
            observed[name] = "refused" if isinstance(call, str) else "stored"
    return Observed(
        observed, {**dict.fromkeys(DTYPES, EQUAL), "uint4": "refused", "key": "refused"}
    )


@probe(source="jax-ml/ml_dtypes#216")
def npz_of_other_releases(env):
    """A `.npz` file keeps the bits of every dtype; a bfloat16 array is read as void, of 2 bytes."""
    observed = {}
    for writer in list_writers():
        with np.load(io.BytesIO(read_file(writer, "arrays.npz"))) as file:
            loaded = {dtype: file[dtype] for dtype in ("float32", "bfloat16", "complex64")}
        observed[writer] = {
            dtype: [str(array.dtype), array.tobytes() == numbers(dtype).tobytes()]
            for dtype, array in loaded.items()
        }
    exact = {dtype: [dtype, True] for dtype in ("float32", "complex64")}
    exact["bfloat16"] = ["|V2", True]
    return Observed(observed, dict.fromkeys(list_writers(), exact))


def make_layouts():
    """Return shardings for an array of shape [4, 2], by name; four devices."""
    devices = np.array(jax.devices())
    square = Mesh(devices.reshape(2, 2), ("x", "y"))
    return {
        "same": NamedSharding(Mesh(devices, ("x",)), P("x")),
        "other_mesh": NamedSharding(square, P("y", "x")),
        "fewer_devices": NamedSharding(Mesh(devices[:2], ("x",)), P(None, "x")),
        "replicated": NamedSharding(Mesh(devices, ("x",)), P()),
        "one_device": SingleDeviceSharding(devices[3]),
    }


@probe(source="google/orbax#332", devices=4)
def tensorstore_shardings(env):
    """An array split by rows is restored onto other meshes, fewer devices, and one device."""
    layouts = make_layouts()
    expected = numbers()
    with tempfile.TemporaryDirectory() as folder:
        spec = store({"a": jax.device_put(expected, layouts["same"])}, folder)["a"]
        shardings = list(layouts.values())
        restored = arrays.run_deserialization(shardings, [spec] * len(shardings))
    observed = {
        name: [compare(array, expected), array.sharding == layouts[name]]
        for name, array in zip(layouts, restored, strict=True)
    }
    return Observed(observed, {name: [EQUAL, True] for name in layouts})


@probe(source="google/orbax#332", devices=4)
def tensorstore_arrays_of_other_releases(env):
    """Arrays stored by another release are restored, onto another mesh than that of the writer."""
    sharding = make_layouts()["other_mesh"]
    params = make_target()["params"]
    observed = {}
    for writer in list_writers():
        folder = extract(writer, "arrays")
        specs = [arrays.get_tensorstore_spec(str(folder / name)) for name in params]
        restored = arrays.run_deserialization([sharding] * len(specs), specs)
        observed[writer] = compare_trees(dict(zip(params, restored, strict=True)), params)
    return Observed(observed, dict.fromkeys(list_writers(), EQUAL))


@probe(source="google/orbax#2972")
def tensorstore_other_shapes(env):
    """A larger `global_shapes` silently pads with zeros, a smaller one truncates.

    A checkpoint of a smaller model is loaded into a larger one without an error.
    """
    device = SingleDeviceSharding(jax.devices()[0])
    with tempfile.TemporaryDirectory() as folder:
        spec = store({"a": jax.device_put(numbers())}, folder)["a"]
        observed = {
            "larger": np.asarray(restore(spec, device, global_shapes=[(5, 2)])),
            "smaller": np.asarray(restore(spec, device, global_shapes=[(2, 2)])),
            "float16": np.asarray(restore(spec, device, dtypes=[np.float16])),
        }
    padded = np.concatenate([numbers(), np.zeros((1, 2), np.float32)])
    exact = {"larger": padded, "smaller": numbers()[:2], "float16": numbers("float16")}
    return Observed(observed, exact)


@probe(source="jax-ml/jax@67bf8f9d50bc", devices=4, releases="jax>=0.6.2")
def saved_pytree(env):
    """`pytree_serialization` saves a tree with its structure, and loads it onto shardings."""
    from jax.experimental.array_serialization import (  # noqa: PLC0415 - no such module before
        pytree_serialization as trees,
    )

    layouts = make_layouts()
    rows = jax.device_put(numbers(), layouts["same"])
    tree = {"a": [rows, None], "b": (jax.device_put(numbers("bfloat16")),)}
    onto = jax.tree_util.tree_map(lambda _: layouts["other_mesh"], tree)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = str(Path(folder) / "tree")
        trees.save(tree, path)
        loaded = trees.load(path, onto)
    observed = {
        "values": compare_trees(loaded, tree),
        "sharding": loaded["a"][0].sharding == layouts["other_mesh"],
    }
    return Observed(observed, {"values": EQUAL, "sharding": True})
