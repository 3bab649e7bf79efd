"""Checkpoints in the msgpack format of Flax, `flax.serialization`."""

from __future__ import annotations

import difflib

import jax
from flax import serialization

from conformance.kit import Observed, defaults, deviation, probe

from ._content import make_key, make_target, numbers
from ._loading import EQUAL, compare, compare_trees, list_writers, outcome, read_file

defaults(platforms=("cpu",), requires=["flax"])

DTYPES = ("float32", "bfloat16", "float8_e4m3fn", "float8_e5m2", "int4", "uint4", "bool")


def through_msgpack(tree):
    """Return a tree that is read back from the msgpack format, without a target."""
    return serialization.msgpack_restore(serialization.msgpack_serialize(tree))


@probe(source="google/flax#585")
def msgpack_dtypes(env):
    """An array that is read back has the dtype and bits of the original; typed keys are refused."""
    observed = {}
    for dtype in DTYPES:
        array = jax.device_put(numbers(dtype))
        observed[dtype] = outcome(
            lambda array=array: compare(through_msgpack({"a": array})["a"], array)
        )
    key = outcome(lambda: through_msgpack({"key": make_key()}))
    observed["key"] = "refused" if isinstance(key, str) else "stored"
    return Observed(observed, {**dict.fromkeys(DTYPES, EQUAL), "key": "refused"})


@probe(source="google/flax#3977")
def msgpack_of_other_releases(env):
    """A state that another release stored is read by every release."""
    target = make_target()
    observed = {}
    for writer in list_writers():
        data = read_file(writer, "state.msgpack")
        observed[writer] = outcome(
            lambda data=data: compare_trees(serialization.from_bytes(target, data), target)
        )
    return Observed(observed, dict.fromkeys(list_writers(), EQUAL))


NUMPY_2 = deviation(
    "jax<0.4.33",
    outcome="ok",
    match="issctype",
    reason="Flax 0.8 uses a function that NumPy 2.0 removed, for complex numbers and scalars",
)


@probe(source="google/flax#585", deviations=[NUMPY_2])
def msgpack_containers(env):
    """Restored with a target, the format keeps None, named tuples, lists and complex numbers.

    Without a target, tuples, lists and named tuples are dictionaries.
    """
    tree = {"a": [numbers("int32"), None], "b": difflib.Match(1, 2.5, 3), "c": (True, 1 + 2j, {})}
    data = outcome(lambda: serialization.to_bytes(tree))
    plain = {
        "a": {"0": 0, "1": None},
        "b": {"a": 1, "b": 2.5, "size": 3},
        "c": {"0": 0, "1": 0, "2": {}},
    }

    def get_structure():
        return str(jax.tree_util.tree_structure(serialization.msgpack_restore(data)))

    observed = {
        "written": "yes" if isinstance(data, bytes) else data,
        "with_a_target": outcome(lambda: compare_trees(serialization.from_bytes(tree, data), tree)),
        "without": outcome(get_structure),
    }
    structure = str(jax.tree_util.tree_structure(plain))
    return Observed(observed, {"written": "yes", "with_a_target": EQUAL, "without": structure})
