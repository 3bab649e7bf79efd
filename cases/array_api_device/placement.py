"""`.device` and `to_device`: the device of an array must be usable as a device.

jax arrays may be on several devices, which the standard does not foresee. The rule since 0.4.31:
`.device` is the device of an array on one device, else its sharding, and `to_device` and creation
functions accept both.
"""

from __future__ import annotations

import jax
import numpy as np
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from conformance.kit import Observed, deviation, probe

from ._helpers import label, list_devices, namespace, ones


def place(env, how):
    """Return eight numbers, placed in one of five ways."""
    xp, x = namespace(), np.arange(8, dtype=np.float32)
    if how == "uncommitted":
        return xp.asarray(x)
    if how == "committed":
        return jax.device_put(x, env.devices[2])
    if how == "one_device_mesh":
        mesh = jax.sharding.Mesh(np.array(env.devices[2:3]), ("x",))
        return jax.device_put(x, NamedSharding(mesh, P("x")))
    return jax.device_put(x, NamedSharding(env.mesh(4, "x"), P("x") if how == "sharded" else P()))


DEVICE_WAS_THE_SHARDING = deviation(
    "jax<0.4.31",
    params=["uncommitted", "committed"],
    outcome="ok",
    reason="`.device` was the sharding, as defined by the experimental namespace",
    issue="jax-ml/jax#22597",
)
ONE_DEVICE_MESH_NOT_RECOGNISED = deviation(
    "jax<0.10",
    params=["one_device_mesh"],
    outcome="ok",
    reason="only a SingleDeviceSharding counted as one device",
    issue="jax-ml/jax#22597",
)


@probe(
    source="jax-ml/jax#22597",
    devices=4,
    params={
        "uncommitted": {"how": "uncommitted", "want": "cpu:0"},
        "committed": {"how": "committed", "want": "cpu:2"},
        "one_device_mesh": {"how": "one_device_mesh", "want": "cpu:2"},
        "replicated": {"how": "replicated", "want": "NamedSharding"},
        "sharded": {"how": "sharded", "want": "NamedSharding"},
    },
    platforms=["cpu"],
    deviations=[DEVICE_WAS_THE_SHARDING, ONE_DEVICE_MESH_NOT_RECOGNISED],
)
def device_of_array(env, how, want):
    """`.device` is the device of an array on one device, else the sharding.

    An array on a mesh of one device is on one device, regardless of the type of its sharding. This
    works from 0.10.
    """
    return Observed({"device": label(place(env, how).device)}, reference={"device": want})


@probe(source="jax-ml/jax#22597", devices=4)
def device_is_accepted(env):
    """`zeros(n, device=x.device)`, the idiom of portable libraries, is placed like `x`."""
    placements = ("uncommitted", "committed", "one_device_mesh", "replicated", "sharded")
    observed, expected = {}, {}
    for how in placements:
        x = place(env, how)
        zeros = namespace().zeros(8, device=x.device)
        same = zeros.sharding.is_equivalent_to(x.sharding, 1)
        observed[how] = {"on": list_devices(zeros), "same": same}
        expected[how] = {"on": list_devices(x), "same": True}
    return Observed(observed, reference=expected)


SHARDING_AFTER_A_MOVE = deviation(
    "jax<0.4.31",
    outcome="ok",
    reason="`.device` was the sharding, as defined by the experimental namespace",
    issue="jax-ml/jax#22597",
)


@probe(source="jax-ml/jax#22597", devices=3, deviations=[SHARDING_AFTER_A_MOVE])
def round_trip(env):
    """A move to each device and back gives the requested devices and the same numbers."""
    x = namespace().arange(8, dtype=np.int32)
    observed, home = {}, env.devices[0]
    for device in env.devices:
        moved = x.to_device(device)
        back = moved.to_device(home)
        exact = bool((np.asarray(back) == np.arange(8)).all())
        observed[label(device)] = [moved.device == device, back.device == home, exact]
    return Observed(observed, reference={label(device): [True] * 3 for device in env.devices})


@probe(source="jax-ml/jax#27606", devices=3)
def to_device_none(env):
    """`to_device(None)` is accepted, as None is a listed device, and does not move the array.

    It does not release the array either: a committed array remains committed.
    """
    x = ones(env.devices[2]).to_device(None)
    return Observed({"on": list_devices(x)}, reference={"on": label(env.devices[2])})


@probe(source="jax-ml/jax#22597", devices=4)
def to_device_sharding(env):
    """`to_device` accepts what `.device` gives: from one device to four, and back to one."""
    sharded = place(env, "sharded")
    out = place(env, "committed").to_device(sharded.device)
    back = out.to_device(env.devices[1])
    observed = {"out": list_devices(out), "back": list_devices(back), "numbers": np.asarray(back)}
    expected = {"out": list_devices(sharded), "back": label(env.devices[1])}
    return Observed(observed, reference={**expected, "numbers": np.arange(8, dtype=np.float32)})


ASTYPE_IGNORED_DEVICE = deviation(
    "jax<0.4.31",
    outcome="ok",
    reason="astype left the array on its device",
    issue="jax-ml/jax#21086",
)
ASTYPE_REFUSES_COMMITTED_ARRAYS = deviation(
    "jax>=0.4.31",
    params=["committed"],
    error="ValueError",
    match="incompatible devices",
    reason="the move is a sharding constraint in the jit that converts",
    issue="jax-ml/jax#22664",
)


@probe(
    source="jax-ml/jax#22664",
    devices=3,
    params={"uncommitted": {"committed": False}, "committed": {"committed": True}},
    deviations=[ASTYPE_IGNORED_DEVICE, ASTYPE_REFUSES_COMMITTED_ARRAYS],
)
def astype_to_device(env, committed):
    """`astype(x, dtype, device=d)` converts and moves `x` from any device."""
    xp = namespace()
    x = ones(env.devices[2] if committed else None)
    moved = xp.astype(x, xp.int32, device=env.devices[1])
    observed = {"on": list_devices(moved), "dtype": str(moved.dtype)}
    return Observed(observed, reference={"on": label(env.devices[1]), "dtype": "int32"})


@probe(source="jax-ml/jax#22597", devices=3)
def astype_then_to_device(env):
    """The workaround in two steps: convert the array on its device, then move it."""
    xp = namespace()
    x = ones(env.devices[2])
    moved = xp.astype(x, xp.int32).to_device(env.devices[1])
    observed = {"on": list_devices(moved), "dtype": str(moved.dtype)}
    return Observed(observed, reference={"on": label(env.devices[1]), "dtype": "int32"})


EMPTY_RESULT_ON_DEFAULT_DEVICE = deviation(
    "jax<0.9.1",
    outcome="ok",
    reason="an empty result was created on the default device",
    issue="jax-ml/jax#35273",
)


@probe(
    source="jax-ml/jax#35273",
    devices=4,
    platforms=["cpu"],
    deviations=[EMPTY_RESULT_ON_DEFAULT_DEVICE],
)
def nothing_that_is_left(env):
    """An index or a mask that selects nothing loses the device of the array up to 0.9.0.1."""
    x = jax.device_put(np.arange(3), env.devices[2])
    results = {"mask": x[np.zeros(3, bool)], "indices": x[np.zeros(0, int)], "slice": x[:0]}
    return Observed(
        {key: list_devices(value) for key, value in results.items()},
        dict.fromkeys(results, "cpu:2"),
    )


WEAK_TYPE_LOST = deviation(
    "jax>=0.4.31,<0.5.1",
    outcome="ok",
    reason="devices in another order are reached by another path, which drops the weak type",
    issue="jax-ml/jax@94ba6c3f9827",
)


@probe(source="jax-ml/jax@94ba6c3f9827", devices=2, platforms=["cpu"], deviations=[WEAK_TYPE_LOST])
def number_on_a_reversed_mesh(env):
    """`device_put` of a Python number to a mesh, then to its reverse, keeps the weak type.

    A sum with a float16 array is then float16.
    """
    devices = np.array(env.devices[:2])
    x = 1.0
    for order in (devices, devices[::-1]):
        x = jax.device_put(x, NamedSharding(jax.sharding.Mesh(order, "x"), P()))
    return Observed(str((x + np.ones(2, np.float16)).dtype), reference="float16")
