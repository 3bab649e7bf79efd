"""Copies within one release: `pickle`, `copy.deepcopy` and NumPy files of arrays and metadata."""

from __future__ import annotations

import collections
import copy
import difflib
import io
import pickle

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh, NamedSharding, SingleDeviceSharding
from jax.sharding import PartitionSpec as P

from conformance.kit import Observed, defaults, deviation, probe

from ._content import make_paths, numbers
from ._loading import EQUAL, compare, outcome

defaults(platforms=("cpu",))

DTYPES = ("float32", "bfloat16", "float8_e4m3fn", "float8_e5m2", "int4", "bool", "complex64")


def pickled(value):
    """Return a value that is read back from its pickle."""
    return pickle.loads(pickle.dumps(value))  # noqa: S301 - the bytes are made here


def saved_as_npy(value):
    """Return an array that `jnp.load` reads from a file of `jnp.save`."""
    buffer = io.BytesIO()
    jnp.save(buffer, value)
    buffer.seek(0)
    return jnp.load(buffer)


COPIES = {"pickle": pickled, "deepcopy": copy.deepcopy, "npy": saved_as_npy}


VOID = deviation(
    params=["npy"],
    outcome="ok",
    reason="jnp.load knows no dtype of one byte but those of NumPy, and keys have none",
    issue="jax-ml/ml_dtypes#216",
)


@probe(source="jax-ml/jax#8505", params=[*COPIES], deviations=[VOID])
def copied_dtypes(env, name):
    """A copy of an array has the dtype and bits of the array, for every dtype.

    `jnp.load` recognises bfloat16; arrays of float8_e4m3fn and int4 are read as void, without an
    error, and a file of float8_e5m2 cannot be read.
    """
    observed = {}
    for dtype in DTYPES:
        array = jax.device_put(numbers(dtype))
        observed[dtype] = outcome(lambda array=array: compare(COPIES[name](array), array))
    return Observed(observed, dict.fromkeys(DTYPES, EQUAL))


def describe_placement(array):
    """Return the number of devices of an array, its default device, and whether it is committed."""
    return {
        "devices": sorted(device.id for device in array.devices()),
        "committed": array.committed if hasattr(array, "committed") else array._committed,  # noqa: SLF001
        "sharding": type(array.sharding).__name__,
        "weak_type": array.weak_type,
    }


@probe(source="jax-ml/jax#10659", devices=4, params=["pickle", "deepcopy"])
def copied_placement(env, name):
    """A pickle drops the sharding and the device of an array; a deep copy keeps them."""
    rows = NamedSharding(env.mesh(4, "x"), P("x"))
    arrays = {
        "split": jax.device_put(numbers(), rows),
        "on_device_2": jax.device_put(numbers(), jax.devices()[2]),
        "weak": jnp.asarray(1.5),
    }
    observed = {key: describe_placement(COPIES[name](array)) for key, array in arrays.items()}
    default = {"devices": [0], "committed": False, "sharding": "SingleDeviceSharding"}
    exact = {key: {**default, "weak_type": key == "weak"} for key in arrays}
    if name == "deepcopy":
        exact["split"].update(devices=[0, 1, 2, 3], committed=True, sharding="NamedSharding")
        exact["on_device_2"].update(devices=[2], committed=True)
    return Observed(observed, exact)


def make_mesh():
    """Return a mesh of two by two devices."""
    return Mesh(np.array(jax.devices()).reshape(2, 2), ("x", "y"))


METADATA = {
    "Mesh": make_mesh,
    "SingleDeviceSharding": lambda: SingleDeviceSharding(jax.devices()[1]),
    "PartitionSpec_unconstrained": lambda: P(P.UNCONSTRAINED, "x"),
    "ShapedArray": lambda: jax.core.ShapedArray((3,), np.dtype("float32")),
}
DEVICES_NOT_COPIED = deviation(
    "jax<0.10",
    params=["Mesh"],
    outcome="ok",
    match="cannot pickle",
    reason="devices can neither be pickled nor copied",
    issue="jax-ml/jax#10659",
)
DEVICES_NOT_PICKLED = deviation(
    "jax>=0.10",
    params=["Mesh"],
    outcome="ok",
    match="cannot pickle",
    reason="devices cannot be pickled; a deep copy of a Mesh is the Mesh itself",
    issue="jax-ml/jax@976a4babaa54",
)
DEVICE_NOT_COPIED = deviation(
    params=["SingleDeviceSharding"],
    outcome="ok",
    match="cannot pickle",
    reason="devices can neither be pickled nor copied",
    issue="jax-ml/jax#10659",
)
UNCONSTRAINED_COPIED = deviation(
    "jax<0.5.1",
    params=["PartitionSpec_unconstrained"],
    outcome="ok",
    match="not equal",
    reason="a copy of UNCONSTRAINED is another object, which is not equal to it",
    issue="jax-ml/jax@675be0121b0d",
)
AUTO_LAYOUT_COPIED = deviation(
    "jax>=0.11.1",
    params=["ShapedArray"],
    outcome="ok",
    match="not equal",
    reason="a copy of the layout AUTO is another object, and avals are compared by identity",
)


@probe(
    source="jax-ml/jax@675be0121b0d",
    devices=4,
    params=[*METADATA],
    deviations=[
        DEVICES_NOT_COPIED,
        DEVICES_NOT_PICKLED,
        DEVICE_NOT_COPIED,
        UNCONSTRAINED_COPIED,
        AUTO_LAYOUT_COPIED,
    ],
)
def copied_metadata(env, name):
    """A copy of a mesh, sharding, spec or aval equals the original."""
    value = METADATA[name]()
    observed = {
        method: outcome(lambda method=method: compare(COPIES[method](value), value))
        for method in ("pickle", "deepcopy")
    }
    return Observed(observed, {"pickle": EQUAL, "deepcopy": EQUAL})


UNKNOWN_AXIS = deviation(
    "jax<0.5.1",
    outcome="ok",
    match="Resource axis: UNCONSTRAINED",
    reason="a copy of UNCONSTRAINED is taken for the name of an axis",
    issue="jax-ml/jax@675be0121b0d",
)


@probe(source="jax-ml/jax@675be0121b0d", devices=4, deviations=[UNKNOWN_AXIS])
def unconstrained_in_use(env):
    """A constraint with a pickled `P.UNCONSTRAINED` leaves that dimension to the compiler."""
    mesh = make_mesh()
    x = jax.device_put(np.zeros((4, 4), np.float32), NamedSharding(mesh, P("x")))

    def get_layout(spec):
        sharding = NamedSharding(mesh, spec)
        f = jax.jit(lambda x: lax.with_sharding_constraint(x + 1, sharding))
        return str(f(x).sharding.shard_shape(x.shape))

    spec = P(P.UNCONSTRAINED, "y")
    observed = {"original": outcome(lambda: get_layout(spec))}
    observed["pickled"] = outcome(lambda: get_layout(pickled(spec)))
    return Observed(observed, {"original": "(2, 2)", "pickled": "(2, 2)"})


@probe(source="jax-ml/jax#35065", devices=4)
def deep_copies_of_keys(env):
    """A deep copy of typed keys has their words and sharding."""
    words = np.arange(8, dtype=np.uint32).reshape(4, 2)
    rows = NamedSharding(env.mesh(4, "x"), P("x"))
    keys = jax.device_put(jax.random.wrap_key_data(words), rows)
    copied = copy.deepcopy(keys)
    observed = {"bits": compare(copied, keys), "spec": str(tuple(copied.sharding.spec))}
    return Observed(observed, {"bits": EQUAL, "spec": "('x',)"})


TREES = {
    "builtin": lambda: {"a": [1, (2, None)], "b": {}},
    "named_tuple": lambda: difflib.Match(1, 2, 3),
    "OrderedDict": lambda: collections.OrderedDict(b=1, a=2),
    "integer_keys": lambda: {3: 1, 1: 2},
    "Partial": lambda: jax.tree_util.Partial(np.add, 1),
}


def through_proto(treedef):
    """Return a structure that is read back from its protocol buffer."""
    registry = jax.tree_util.default_registry
    return type(treedef).deserialize_using_proto(registry, treedef.serialize_using_proto())


TREEDEF_COPIES = {"pickle": pickled, "proto": through_proto}
NO_USER_NODES = "ValueError: User-defined nodes are not supported"
PROTO_REFUSALS = {
    "named_tuple": NO_USER_NODES,
    "OrderedDict": NO_USER_NODES,
    "Partial": NO_USER_NODES,
    "integer_keys": "ValueError: Only string keys are supported",
}


@probe(source="jax-ml/jax@a1dfdc1d6164", params=[*TREEDEF_COPIES])
def copied_treedefs(env, name):
    """A PyTreeDef survives copies; a protocol buffer refuses nodes that are not builtin."""
    observed = {}
    for key, make in TREES.items():
        treedef = jax.tree_util.tree_structure(make())
        call = outcome(lambda treedef=treedef: compare(TREEDEF_COPIES[name](treedef), treedef))
        observed[key] = call.partition(" when ")[0].partition(" in proto ")[0]
    refusals = PROTO_REFUSALS if name == "proto" else {}
    return Observed(observed, {key: refusals.get(key, EQUAL) for key in TREES})


@probe(source="jax-ml/jax@a1dfdc1d6164")
def copied_key_paths(env):
    """Copies of key paths are equal to the paths, have their hash, and print as they do."""
    paths = make_paths()
    texts = [jax.tree_util.keystr(path) for path in paths]
    observed = {}
    for method in ("pickle", "deepcopy"):
        copied = COPIES[method](paths)
        observed[method] = {
            "equal": copied == paths,
            "hash": [hash(path) for path in copied] == [hash(path) for path in paths],
            "keystr": [jax.tree_util.keystr(path) for path in copied] == texts,
        }
    exact = {"equal": True, "hash": True, "keystr": True}
    return Observed(
        {**observed, "texts": texts}, {"pickle": exact, "deepcopy": exact, "texts": EXACT}
    )


EXACT = ["['a'][0]", "['a'][1][0]", "['c'].a", "['c'].b", "['c'].size"]


WIDE_WEAK_NUMBER = deviation(
    "jax>=0.11.2",
    outcome="ok",
    reason="the pickled type of a weakly typed array is not narrowed",
    issue="jax-ml/jax@9e4114f0f13f",
)


@probe(source="jax-ml/jax@9e4114f0f13f", deviations=[WIDE_WEAK_NUMBER])
def wide_arrays_read_with_narrow_dtypes(env):
    """Arrays that are pickled with 64 bits enabled, and read with 64 bits disabled, are narrowed.

    From 0.11.2 on, a weakly typed array, such as `jnp.asarray(1.0)`, silently stays float64.
    """
    jax.config.update("jax_enable_x64", True)
    weak, strong = pickle.dumps(jnp.asarray(1.0)), pickle.dumps(jnp.asarray(np.float64(1)))
    jax.config.update("jax_enable_x64", False)
    observed = [str(pickle.loads(text).dtype) for text in (weak, strong)]  # noqa: S301
    return Observed(observed, reference=["float32", "float32"])
