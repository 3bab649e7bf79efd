"""`multihost_utils`: what one process says to all, what all say to each, and whether they agree."""

from __future__ import annotations

import jax
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import PartitionSpec as P

from conformance.kit import Observed, deviation, probe
from conformance.kit.endings import ending

from ._helpers import SHARDS, numbers, of_all, spread


@probe(
    source="jax-ml/jax@94037a8186a9",
    devices=4,
    platforms=("cpu-mp2",),
    params={
        "int8": {"dtype": "int8"},
        "bool": {"dtype": "bool"},
        "float16": {"dtype": "float16"},
        "int32": {"dtype": "int32"},
    },
    deviations=[
        deviation(
            "jax<0.6.2",
            params=["int8", "bool"],
            outcome="ok",
            reason="it is a sum over processes, and sums of small integers are wider",
            issue="jax-ml/jax@94037a8186a9",
        )
    ],
)
def said_by_one(env, dtype):
    """`broadcast_one_to_all` gives every process the first one's array, of the dtype it had."""
    own = np.array([0, 1, 3]).astype(dtype) * np.array(1 - jax.process_index()).astype(dtype)
    said = multihost_utils.broadcast_one_to_all(own)
    return Observed(np.asarray(said), reference=np.array([0, 1, 3]).astype(dtype))


@probe(
    source="jax-ml/jax@d7f5ee2d159d",
    devices=4,
    platforms=("cpu-mp2",),
    params={
        "equal": {"check": "equal", "differ": False},
        "different": {"check": "equal", "differ": True},
        "barrier": {"check": "barrier", "differ": False},
        "barrier_of_two_names": {"check": "barrier", "differ": True},
    },
    deviations=[
        deviation(
            "jax<0.8",
            params=["different", "barrier_of_two_names"],
            outcome="ok",
            reason="each compared with the first process, which so agreed with itself",
            issue="jax-ml/jax@d7f5ee2d159d",
        )
    ],
)
def who_is_told_of_a_difference(env, check, differ):
    """`assert_equal` and `sync_global_devices` fail in every process; up to 0.7.2 not in the first.

    There one process ended and the other went on to wait for it.
    """
    own = jax.process_index() if differ else 0
    call, said = {
        "equal": (multihost_utils.assert_equal, np.float32(own)),
        "barrier": (multihost_utils.sync_global_devices, f"step {own}"),
    }[check]
    failed = ending(call, said).startswith("AssertionError")
    return Observed(of_all(failed), reference=np.array([differ, differ]))


@probe(
    source="jax-ml/jax@16ae54c091fa",
    devices=4,
    platforms=("cpu-mp2",),
    params={
        "tiled": {"tiled": True},
        "untiled": {"tiled": False},
        "with_a_mesh": {"tiled": True, "mesh": True},
    },
    deviations=[
        deviation(
            "jax<0.8",
            params=["untiled"],
            outcome="ok",
            reason="accepted, and gathered as if tiled",
            issue="jax-ml/jax@16ae54c091fa",
        )
    ],
)
def gathered(env, tiled, mesh=False):
    """`process_allgather` of an array of both processes gives each the whole, tiled only.

    With `tiled=False` it might be stacked, and is not: refused since 0.8.0.
    """
    whole = numbers(env, 8)
    x = spread(env, whole)

    def gather():
        return multihost_utils.process_allgather(x, tiled=tiled)

    if not tiled:
        told = ending(gather, words=("only supports tiled=True",))
        return Observed(told, reference="ValueError: only supports tiled=True")
    if mesh:
        with env.compat.set_mesh(env.mesh(SHARDS, "x")):
            return Observed(np.asarray(gather()), reference=whole.astype(np.float64))
    return Observed(np.asarray(gather()), reference=whole.astype(np.float64))


@probe(
    source="jax-ml/jax@2bb5ce5e73c7",
    devices=4,
    platforms=("cpu-mp2",),
    params={"numbers": {"keys": False}, "keys": {"keys": True}},
    deviations=[
        deviation(
            "jax<0.8",
            params=["keys"],
            outcome="ok",
            reason="refused: keys were taken for arrays of another kind",
            issue="jax-ml/jax@2bb5ce5e73c7",
        )
    ],
)
def to_global_and_back(env, keys):
    """Arrays of a process become one of all, and are taken apart again; keys since 0.8.0."""
    mesh = env.mesh(SHARDS, "x")
    own = np.arange(4, dtype=np.uint32) + 4 * jax.process_index()
    local = jax.vmap(jax.random.key)(own) if keys else own
    to_global = multihost_utils.host_local_array_to_global_array
    if ending(to_global, local, mesh, P("x")) != "accepted":
        return Observed("refused", reference="accepted")
    whole = to_global(local, mesh, P("x"))
    back = multihost_utils.global_array_to_host_local_array(whole, mesh, P("x"))
    seen = jax.random.key_data(back)[:, 1] if keys else back
    reference = np.arange(8, dtype=np.uint32).reshape(2, 4)
    return Observed((whole.shape, of_all(seen)), reference=((8,), reference))


@probe(source="jax-ml/jax@5db78e7ae033", devices=4, platforms=("cpu-mp2",), releases="jax>=0.5.1")
def a_process_among_others(env):
    """How many processes and devices there are, and which are a process's own."""
    seen = {
        "joined": jax.distributed.is_initialized(),
        "processes": jax.process_count(),
        "devices": [jax.device_count(), jax.local_device_count()],
        "own": {d.process_index - jax.process_index() for d in jax.local_devices()} == {0},
        "numbers": of_all(jax.process_index()),
    }
    reference = {
        "joined": True,
        "processes": 2,
        "devices": [4, 2],
        "own": True,
        "numbers": np.arange(2),
    }
    return Observed(seen, reference=reference)
