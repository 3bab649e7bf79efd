"""`multihost_utils`: broadcasts, gathers, and checks that processes agree."""

from __future__ import annotations

import jax
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import PartitionSpec as P

from conformance.kit import Observed, defaults, deviation, probe
from conformance.kit.endings import ending

from ._helpers import SHARDS, draw_integers, gather_values, make_spread_array

defaults(devices=4, platforms=("cpu-mp2",))


BROADCAST_WIDENED_DTYPE = deviation(
    "jax<0.6.2",
    params=["int8", "bool"],
    outcome="ok",
    reason="the broadcast is a sum over processes, and sums of small integers are wider",
    issue="jax-ml/jax@94037a8186a9",
)


@probe(
    source="jax-ml/jax@94037a8186a9",
    params={
        "int8": {"dtype": "int8"},
        "bool": {"dtype": "bool"},
        "float16": {"dtype": "float16"},
        "int32": {"dtype": "int32"},
    },
    deviations=[BROADCAST_WIDENED_DTYPE],
)
def said_by_one(env, dtype):
    """`broadcast_one_to_all` gives every process the array of the first, with its dtype."""
    own = np.array([0, 1, 3]).astype(dtype) * np.array(1 - jax.process_index()).astype(dtype)
    received = multihost_utils.broadcast_one_to_all(own)
    return Observed(np.asarray(received), reference=np.array([0, 1, 3]).astype(dtype))


FIRST_PROCESS_PASSED = deviation(
    "jax<0.8",
    params=["different", "barrier_of_two_names"],
    outcome="ok",
    reason="each process compared with the first, which therefore agreed with itself",
    issue="jax-ml/jax@d7f5ee2d159d",
)


@probe(
    source="jax-ml/jax@d7f5ee2d159d",
    params={
        "equal": {"check": "equal", "differ": False},
        "different": {"check": "equal", "differ": True},
        "barrier": {"check": "barrier", "differ": False},
        "barrier_of_two_names": {"check": "barrier", "differ": True},
    },
    deviations=[FIRST_PROCESS_PASSED],
)
def who_is_told_of_a_difference(env, check, differ):
    """`assert_equal` and `sync_global_devices` fail in every process if the processes differ.

    Up to 0.7.2 they did not fail in the first process: one process ended, and the other went on to
    wait for it.
    """
    own = jax.process_index() if differ else 0
    call, argument = {
        "equal": (multihost_utils.assert_equal, np.float32(own)),
        "barrier": (multihost_utils.sync_global_devices, f"step {own}"),
    }[check]
    failed = ending(call, argument).startswith("AssertionError")
    return Observed(gather_values(failed), reference=np.array([differ, differ]))


UNTILED_ACCEPTED = deviation(
    "jax<0.8",
    params=["untiled"],
    outcome="ok",
    reason="tiled=False was accepted, and gathered as if tiled",
    issue="jax-ml/jax@16ae54c091fa",
)


@probe(
    source="jax-ml/jax@16ae54c091fa",
    params={
        "tiled": {"tiled": True},
        "untiled": {"tiled": False},
        "with_a_mesh": {"tiled": True, "mesh": True},
    },
    deviations=[UNTILED_ACCEPTED],
)
def gathered(env, tiled, mesh=False):
    """`process_allgather` of an array of both processes gives each process the whole, if tiled.

    With `tiled=False` the result could be stacked, but is not: refused from 0.8.0.
    """
    whole = draw_integers(env, 8)
    x = make_spread_array(env, whole)

    def gather():
        return multihost_utils.process_allgather(x, tiled=tiled)

    if not tiled:
        outcome = ending(gather, words=("only supports tiled=True",))
        return Observed(outcome, reference="ValueError: only supports tiled=True")
    if mesh:
        with env.compat.set_mesh(env.mesh(SHARDS, "x")):
            return Observed(np.asarray(gather()), reference=whole.astype(np.float64))
    return Observed(np.asarray(gather()), reference=whole.astype(np.float64))


KEYS_REFUSED = deviation(
    "jax<0.8",
    params=["keys"],
    outcome="ok",
    reason="keys were refused, because they were taken for arrays of another kind",
    issue="jax-ml/jax@2bb5ce5e73c7",
)


@probe(
    source="jax-ml/jax@2bb5ce5e73c7",
    params={"numbers": {"keys": False}, "keys": {"keys": True}},
    deviations=[KEYS_REFUSED],
)
def to_global_and_back(env, keys):
    """Arrays of a process become a global array and are split again; keys from 0.8.0."""
    mesh = env.mesh(SHARDS, "x")
    own = np.arange(4, dtype=np.uint32) + 4 * jax.process_index()
    local = jax.vmap(jax.random.key)(own) if keys else own
    to_global = multihost_utils.host_local_array_to_global_array
    if ending(to_global, local, mesh, P("x")) != "accepted":
        return Observed("refused", reference="accepted")
    whole = to_global(local, mesh, P("x"))
    back = multihost_utils.global_array_to_host_local_array(whole, mesh, P("x"))
    observed = jax.random.key_data(back)[:, 1] if keys else back
    reference = np.arange(8, dtype=np.uint32).reshape(2, 4)
    return Observed((whole.shape, gather_values(observed)), reference=((8,), reference))


@probe(source="jax-ml/jax@5db78e7ae033", releases="jax>=0.5.1")
def a_process_among_others(env):
    """A process reports the numbers of processes and devices, and which devices are its own."""
    observed = {
        "joined": jax.distributed.is_initialized(),
        "processes": jax.process_count(),
        "devices": [jax.device_count(), jax.local_device_count()],
        "own": {d.process_index - jax.process_index() for d in jax.local_devices()} == {0},
        "numbers": gather_values(jax.process_index()),
    }
    reference = {
        "joined": True,
        "processes": 2,
        "devices": [4, 2],
        "own": True,
        "numbers": np.arange(2),
    }
    return Observed(observed, reference=reference)
