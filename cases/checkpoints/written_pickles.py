"""Pickles that other releases wrote: which objects every release reads.

JAX promises nothing for pickles, yet many projects publish weights and optimiser states as pickles.
A pickle names functions and classes by module, and passes them the state of the release that wrote
it; both change. The formats of `arrays_in_files.py`, `msgpack_files.py` and `orbax_checkpoints.py`
do not have this problem.
"""

from __future__ import annotations

import pickle

import jax
import jax.numpy as jnp
import numpy as np

from conformance.kit import Observed, defaults, deviation, probe

from ._content import PICKLED, make_treedef
from ._loading import (
    EQUAL,
    compare,
    compare_trees,
    expect_equal,
    list_writers,
    outcome,
    read_file,
    restore_pickles,
    run_in_child,
)

defaults(platforms=("cpu",))


NAMED_SHAPE = deviation(
    "jax>=0.8,<0.11.2",
    outcome="ok",
    match="unexpected keyword argument 'named_shape'",
    reason="0.4.30 stored a named_shape with each array",
    issue="jax-ml/jax@fa3b7b9e405b",
)


def restore(*names):
    """Return the outcomes of pickles, and that every release reads them as the reference."""
    return Observed(restore_pickles(names, lambda name: PICKLED[name]()), expect_equal(names))


@probe(source="dpiras/cosmopower-jax#21", deviations=[NAMED_SHAPE])
def pickled_array(env):
    """Every release reads a pickled float32 array."""
    return restore("array")


NEW_FLAGS = deviation(
    "jax<0.7.1",
    outcome="ok",
    match="bfloat16",
    reason="ml_dtypes up to 0.5.1 cannot read a dtype that 0.5.3 or later pickled",
    issue="jax-ml/ml_dtypes@b28d3cd5986d",
)
OLD_FLAGS = deviation(
    "jax>=0.7.1",
    outcome="ok",
    match="bfloat16",
    reason="ml_dtypes from 0.5.3 on cannot read a dtype that 0.5.1 or earlier pickled",
    issue="jax-ml/ml_dtypes@b28d3cd5986d",
)


def use_bfloat16(writer):
    """Return the outcome of reading a bfloat16 array, and of making another array afterwards."""
    data = read_file(writer, "pickle/bfloat16")
    values = np.ones(2, jnp.bfloat16)
    return {
        "read": outcome(lambda: compare(pickle.loads(data), PICKLED["bfloat16"]())),  # noqa: S301
        "used_afterwards": outcome(lambda: compare(jax.device_put(values), values)),
    }


@probe(source="jax-ml/ml_dtypes@b28d3cd5986d", deviations=[NEW_FLAGS, OLD_FLAGS])
def pickled_bfloat16(env):
    """Every release reads a pickled bfloat16 array, and can use bfloat16 afterwards.

    The environment of a release before 0.7.1 has ml_dtypes up to 0.5.1, others have 0.5.3 or later.
    Reading a pickle of the other side sets the flags of the dtype of the process to those of the
    pickle. They are part of the hash of the dtype, so jax no longer recognises any bfloat16 array:
    each use of bfloat16 in the process is a TypeError.
    """
    writers = list_writers()
    observed = {writer: run_in_child(use_bfloat16, [writer])[writer] for writer in writers}
    exact = {"read": EQUAL, "used_afterwards": EQUAL}
    return Observed(observed, dict.fromkeys(writers, exact))


NEW_MODULE_OF_KEYS = deviation(
    "jax<0.10.2",
    outcome="ok",
    match="jax._src.random.prng",
    reason="the class of keys that 0.12.0.1 names is in another module",
    issue="jax-ml/jax@e9b27cd81361",
)
OLD_MODULE_OF_KEYS = deviation(
    "jax>=0.10.2",
    outcome="ok",
    match="No module named 'jax._src.prng'",
    reason="the class of keys that releases before 0.10.2 name was moved",
    issue="jax-ml/jax@e9b27cd81361",
)


@probe(source="jax-ml/jax@e9b27cd81361", deviations=[NEW_MODULE_OF_KEYS, OLD_MODULE_OF_KEYS])
def pickled_typed_key(env):
    """Every release reads a pickled typed key.

    From 0.10.2 no key that an older release pickled can be read. Store `jax.random.key_data`.
    """
    return restore("key")


NO_UNPICKLE_PSPEC = deviation(
    "jax<0.6.2",
    outcome="ok",
    match="unpickle_pspec",
    reason="0.6.2 to 0.10.0 name a function for the construction of a spec",
    issue="jax-ml/jax@b3db37426a96",
)
SPEC_OF_A_NEWER_RELEASE = deviation(
    "jax>=0.6.2,<0.10.1",
    outcome="ok",
    match="0.12.0.1",
    reason="PartitionSpec was written in Python again, with other state",
    issue="jax-ml/jax@5e2e7fba6f0a",
)
UNPICKLE_PSPEC_REMOVED = deviation(
    "jax>=0.10.1",
    outcome="ok",
    match="unpickle_pspec",
    reason="the function that 0.6.2 to 0.10.0 name was removed",
    issue="jax-ml/jax@5e2e7fba6f0a",
)


@probe(
    source="jax-ml/jax@5e2e7fba6f0a",
    deviations=[NO_UNPICKLE_PSPEC, SPEC_OF_A_NEWER_RELEASE, UNPICKLE_PSPEC_REMOVED],
)
def pickled_partition_spec(env):
    """Every release reads a pickled PartitionSpec, with and without an unconstrained dimension."""
    return restore("PartitionSpec", "PartitionSpec_unconstrained")


STATE_OF_ABSTRACT_MESH = deviation(
    outcome="ok",
    reason="the attributes of an AbstractMesh changed in 6 releases from 0.4.36 to 0.10.2",
    issue="jax-ml/jax@077491100e3c",
)


@probe(source="jax-ml/jax@077491100e3c", deviations=[STATE_OF_ABSTRACT_MESH])
def pickled_abstract_mesh(env):
    """Every release reads a pickled AbstractMesh."""
    return restore("AbstractMesh")


STATE_OF_STRUCTS = deviation(
    outcome="ok",
    reason="the attributes of a ShapeDtypeStruct changed in 8 releases from 0.4.31 to 0.11.1",
    issue="jax-ml/jax@bcead8e85aff",
)


@probe(source="jax-ml/jax@bcead8e85aff", deviations=[STATE_OF_STRUCTS])
def pickled_shape_dtype_struct(env):
    """Every release reads a pickled ShapeDtypeStruct."""
    return restore("ShapeDtypeStruct")


NO_MODULE_JAX = deviation(
    "jax<0.6.1",
    outcome="ok",
    match="No module named 'jaxlib._jax'",
    reason="releases from 0.6.1 on name the module jaxlib._jax",
    issue="jax-ml/jax@7877bec7822f",
)
NO_MODULE_XLA_EXTENSION = deviation(
    "jax>=0.6.1",
    params=["pickle"],
    outcome="ok",
    match="No module named 'jaxlib.xla_extension'",
    reason="releases up to 0.6.0 name the module jaxlib.xla_extension",
    issue="jax-ml/jax@7877bec7822f",
)
NO_MODULE_JAX_FOR_PICKLES = deviation(
    "jax<0.6.1",
    params=["pickle"],
    outcome="ok",
    match="No module named 'jaxlib._jax'",
    reason="releases from 0.6.1 on name the module jaxlib._jax",
    issue="jax-ml/jax@7877bec7822f",
)


def read_proto(writer):
    """Return the outcome of reading a structure from a protocol buffer."""
    registry = jax.tree_util.default_registry
    data = read_file(writer, "pickle/treedef_proto")
    return compare(type(make_treedef()).deserialize_using_proto(registry, data), make_treedef())


@probe(
    source="jax-ml/jax@7877bec7822f",
    params=["pickle", "proto"],
    deviations=[NO_MODULE_JAX_FOR_PICKLES, NO_MODULE_XLA_EXTENSION],
)
def stored_treedef(env, name):
    """Every release reads a PyTreeDef, from a pickle and from a protocol buffer."""
    if name == "pickle":
        return restore("PyTreeDef", "PyTreeDef_named_tuple")
    writers = list_writers()
    observed = {writer: outcome(lambda writer=writer: read_proto(writer)) for writer in writers}
    return Observed(observed, dict.fromkeys(writers, EQUAL))


PATHS_FROM_PYTHON = deviation(
    "jax>=0.4.36",
    outcome="ok",
    match="__setstate__",
    reason="keys of paths were written in C++, with other state",
    issue="jax-ml/jax@a1dfdc1d6164",
)


@probe(source="jax-ml/jax@a1dfdc1d6164", deviations=[PATHS_FROM_PYTHON, NO_MODULE_JAX])
def pickled_key_paths(env):
    """Every release reads the pickled key paths of a tree."""
    return restore("key_paths")


NO_AXIS_TYPE = deviation(
    "jax<0.5.3",
    outcome="ok",
    match="AxisType",
    reason="0.5.3 added AxisType, and 0.4.35 the batching dimensions of gather",
    issue="jax-ml/jax@ed5ba633d4db",
)


@probe(source="jax-ml/jax@ed5ba633d4db", deviations=[NO_AXIS_TYPE])
def pickled_enums(env):
    """Every release reads a Precision, an AxisType and GatherDimensionNumbers."""
    return restore("Precision", "AxisType", "GatherDimensionNumbers")


def compare_adam(writer):
    """Return how the Adam state of a release differs from that of this one."""
    import optax  # noqa: PLC0415 - in the child

    adam = optax.adam(0.1).init({"w": np.ones(2, np.float32)})
    return compare_trees(pickle.loads(read_file(writer, "pickle/adam")), adam)  # noqa: S301


@probe(source="RobertTLange/evosax#112", requires=["optax"], deviations=[NAMED_SHAPE])
def pickled_adam_state(env):
    """Every release reads the pickled state of `optax.adam`."""
    writers = list_writers()
    return Observed(run_in_child(compare_adam, writers), dict.fromkeys(writers, EQUAL))
