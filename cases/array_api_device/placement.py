"""`.device`, `to_device` and what comes back: an array's device must be usable as a device.

jax arrays may live on many devices, which the standard does not foresee. The rule since 0.4.31:
`.device` is the device of an array on one device, else its sharding, and either may be handed to
`to_device` and to creation functions.
"""

from __future__ import annotations

import jax
import numpy as np
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from conformance.kit import Observed, deviation, probe

from ._helpers import held, label, namespace, ones


def place(env, how):
    """Return eight numbers placed in one of five ways."""
    xp, x = namespace(), np.arange(8, dtype=np.float32)
    if how == "uncommitted":
        return xp.asarray(x)
    if how == "committed":
        return jax.device_put(x, env.devices[2])
    if how == "one_device_mesh":
        mesh = jax.sharding.Mesh(np.array(env.devices[2:3]), ("x",))
        return jax.device_put(x, NamedSharding(mesh, P("x")))
    return jax.device_put(x, NamedSharding(env.mesh(4, "x"), P("x") if how == "sharded" else P()))


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
    deviations=[
        deviation(
            "jax<0.4.31",
            params=["uncommitted", "committed"],
            outcome="ok",
            reason="`.device` is the sharding, as the experimental namespace makes it",
            issue="jax-ml/jax#22597",
        ),
        deviation(
            "jax<0.10",
            params=["one_device_mesh"],
            outcome="ok",
            reason="only a SingleDeviceSharding counts as one device",
            issue="jax-ml/jax#22597",
        ),
    ],
)
def device_of_array(env, how, want):
    """`.device` is the device of an array on one device, else the sharding.

    A mesh of one device is one device, whatever the sharding is called; it took until 0.10.
    """
    return Observed({"device": label(place(env, how).device)}, reference={"device": want})


@probe(source="jax-ml/jax#22597", devices=4)
def device_is_accepted(env):
    """`zeros(n, device=x.device)`, the idiom of portable libraries, lands where `x` is."""
    ways = ("uncommitted", "committed", "one_device_mesh", "replicated", "sharded")
    seen, expected = {}, {}
    for how in ways:
        x = place(env, how)
        made = namespace().zeros(8, device=x.device)
        same = made.sharding.is_equivalent_to(x.sharding, 1)
        seen[how] = {"on": held(made), "same": same}
        expected[how] = {"on": held(x), "same": True}
    return Observed(seen, reference=expected)


@probe(
    source="jax-ml/jax#22597",
    devices=3,
    deviations=[
        deviation(
            "jax<0.4.31",
            outcome="ok",
            reason="`.device` is the sharding, as the experimental namespace makes it",
            issue="jax-ml/jax#22597",
        ),
    ],
)
def round_trip(env):
    """To every device and back: the device is the one asked for, the numbers are the same."""
    x = namespace().arange(8, dtype=np.int32)
    seen, home = {}, env.devices[0]
    for device in env.devices:
        there = x.to_device(device)
        back = there.to_device(home)
        exact = bool((np.asarray(back) == np.arange(8)).all())
        seen[label(device)] = [there.device == device, back.device == home, exact]
    return Observed(seen, reference={label(device): [True] * 3 for device in env.devices})


@probe(source="jax-ml/jax#27606", devices=3)
def to_device_none(env):
    """`to_device(None)`: None is a listed device, so it must be taken; the array stays put.

    It does not come off its device either: what was committed remains so.
    """
    x = ones(env.devices[2]).to_device(None)
    return Observed({"on": held(x)}, reference={"on": label(env.devices[2])})


@probe(source="jax-ml/jax#22597", devices=4)
def to_device_sharding(env):
    """From one device to four and back to one: `to_device` takes what `.device` gives."""
    spread = place(env, "sharded")
    out = place(env, "committed").to_device(spread.device)
    back = out.to_device(env.devices[1])
    seen = {"out": held(out), "back": held(back), "numbers": np.asarray(back)}
    expected = {"out": held(spread), "back": label(env.devices[1])}
    return Observed(seen, reference={**expected, "numbers": np.arange(8, dtype=np.float32)})


@probe(
    source="jax-ml/jax#22664",
    devices=3,
    params={"uncommitted": {"committed": False}, "committed": {"committed": True}},
    deviations=[
        deviation(
            "jax<0.4.31",
            outcome="ok",
            reason="astype keeps the array where it is",
            issue="jax-ml/jax#21086",
        ),
        deviation(
            "jax>=0.4.31",
            params=["committed"],
            error="ValueError",
            match="incompatible devices",
            reason="the move is a sharding constraint in the jit that converts",
            issue="jax-ml/jax#22664",
        ),
    ],
)
def astype_to_device(env, committed):
    """`astype(x, dtype, device=d)` converts and moves, wherever `x` is."""
    xp = namespace()
    x = ones(env.devices[2] if committed else None)
    moved = xp.astype(x, xp.int32, device=env.devices[1])
    seen = {"on": held(moved), "dtype": str(moved.dtype)}
    return Observed(seen, reference={"on": label(env.devices[1]), "dtype": "int32"})


@probe(source="jax-ml/jax#22597", devices=3)
def astype_then_to_device(env):
    """The way out, in two steps: convert where it is, then move."""
    xp = namespace()
    x = ones(env.devices[2])
    moved = xp.astype(x, xp.int32).to_device(env.devices[1])
    seen = {"on": held(moved), "dtype": str(moved.dtype)}
    return Observed(seen, reference={"on": label(env.devices[1]), "dtype": "int32"})


@probe(
    source="jax-ml/jax#35273",
    devices=4,
    platforms=["cpu"],
    deviations=[
        deviation(
            "jax<0.9.1",
            outcome="ok",
            reason="what is empty was made anew, on the default device",
            issue="jax-ml/jax#35273",
        )
    ],
)
def nothing_that_is_left(env):
    """An index or a mask that leaves nothing of an array: its device is lost up to 0.9.0.1."""
    x = jax.device_put(np.arange(3), env.devices[2])
    left = {"mask": x[np.zeros(3, bool)], "indices": x[np.zeros(0, int)], "slice": x[:0]}
    return Observed({key: held(value) for key, value in left.items()}, dict.fromkeys(left, "cpu:2"))
