"""`multihost_utils` in a program of one process, where each function has nothing to send."""

from __future__ import annotations

import jax
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from conformance.kit import Observed, defaults, deviation, probe

from ._helpers import outcome

defaults(platforms=("cpu",), devices=4)

TREE = {"a": np.arange(4, dtype=np.float32), "b": np.int32(3)}


NO_AXIS_OF_PROCESSES = deviation(
    "jax<0.5",
    params=["stacked"],
    outcome="ok",
    reason="with one process, the array was returned as it is",
    issue="jax-ml/jax#25783",
)


@probe(
    source="jax-ml/jax#25783",
    deviations=[NO_AXIS_OF_PROCESSES],
    params={"stacked": {"tiled": False}, "tiled": {"tiled": True}},
)
def process_allgather(env, tiled):
    """`process_allgather` of one process adds an axis from 0.5.0; with `tiled` it does not."""
    out = multihost_utils.process_allgather(TREE["a"], tiled=tiled)
    observed = (np.asarray(out), isinstance(out, np.ndarray))
    return Observed(observed, (TREE["a"] if tiled else TREE["a"][None], True))


@probe(source="jax-ml/jax#25783")
def allgather_of_sharded(env):
    """`process_allgather` of a sharded array gives the whole array, as NumPy."""
    x = jax.device_put(TREE["a"], NamedSharding(env.mesh(4, "x"), P("x")))
    out = multihost_utils.process_allgather(x, tiled=True)
    return Observed((np.asarray(out), isinstance(out, np.ndarray)), (TREE["a"], True))


@probe(source="jax-ml/jax#25783")
def agreement(env):
    """A broadcast returns its argument; `assert_equal` and the barrier return nothing."""
    out = multihost_utils.broadcast_one_to_all(TREE)
    observed = {
        "broadcast": jax.tree_util.tree_map(np.asarray, out),
        "assert_equal": outcome(lambda: multihost_utils.assert_equal(TREE, "differs")),
        "sync": outcome(lambda: multihost_utils.sync_global_devices("end")),
    }
    expected = {
        "broadcast": TREE,
        "assert_equal": "ran",
        "sync": "ran",
    }
    return Observed(observed, expected)


@probe(source="jax-ml/jax#25783")
def host_local_and_global(env):
    """An array of the host becomes a sharded one, and again one of the host."""
    mesh, spec = env.mesh(4, "x"), {"a": P("x"), "b": P()}
    whole = multihost_utils.host_local_array_to_global_array(TREE, mesh, spec)
    back = multihost_utils.global_array_to_host_local_array(whole, mesh, spec)
    specs = {name: str(tuple(x.sharding.spec)) for name, x in whole.items()}
    shards = [s.data.shape for s in whole["a"].addressable_shards]
    observed = (specs, shards, jax.tree_util.tree_map(np.asarray, back))
    return Observed(observed, ({"a": "('x',)", "b": "()"}, [(1,)] * 4, TREE))


LITERAL_WITHOUT_A_SHAPE = deviation(
    "jax>=0.7.2,<0.8",
    error="AttributeError",
    match="'LiteralFloat' object has no attribute 'shape'",
    reason="a number reached the function as a type of jax that has no shape",
    issue="jax-ml/jax@2bb5ce5e73c7",
)
NUMBER_WITHOUT_A_SHAPE = deviation(
    "jax>=0.10",
    error="AttributeError",
    match="has no attribute 'shape'",
    reason="a number reaches the function as a type of jax that has no shape",
)


@probe(
    source="jax-ml/jax@2bb5ce5e73c7",
    deviations=[LITERAL_WITHOUT_A_SHAPE, NUMBER_WITHOUT_A_SHAPE],
)
def global_array_of_a_number(env):
    """`host_local_array_to_global_array` of a Python number, such as the number of a step."""
    mesh = env.mesh(4, "x")
    step = multihost_utils.host_local_array_to_global_array(3.0, mesh, P())
    return Observed(np.asarray(step), reference=np.float32(3))
