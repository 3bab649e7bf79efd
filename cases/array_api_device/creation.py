"""Every listed device is accepted where a device may be given, and the array lands there.

`devices()` would be an empty promise if a creation function refused one of its entries. None
counts: it stands for uncommitted, so `device=None` must be taken everywhere and leave an array
that follows what it meets, while a named device commits.
"""

from __future__ import annotations

import jax
import numpy as np

from conformance.kit import Observed, Program, deviation, probe, program, raises

from ._helpers import held, label, namespace, ones

CREATE = {
    "zeros": (3,),
    "ones": (3,),
    "empty": (3,),
    "full": (3, 2.0),
    "arange": (3,),
    "asarray": ([1.0, 2.0],),
    "eye": (2,),
    "linspace": (0.0, 1.0, 3),
}


@probe(source="jax-ml/jax#21980", xla_flags=["--xla_backend_optimization_level=0"], devices=3)
def creation_functions(env):
    """Eight creation functions on each device, and on None: the first device."""
    wanted = [None, *env.devices]
    made = {
        f"{name} {label(device)}": held(getattr(namespace(), name)(*given, device=device))
        for name, given in CREATE.items()
        for device in wanted
    }
    expected = {
        f"{name} {label(device)}": label(device or env.devices[0])
        for name in CREATE
        for device in wanted
    }
    return Observed(made, reference=expected)


@probe(source="data-apis/array-api#835", devices=3)
def none_is_uncommitted(env):
    """An array made with `device=None` follows the array it is added to."""
    xp, other = namespace(), env.devices[2]
    total = xp.ones(3, device=None) + xp.ones(3, device=other)
    return Observed({"on": held(total)}, reference={"on": label(other)})


@program(
    source="data-apis/array-api#835",
    devices=3,
    deviations=[
        deviation(
            "jax<0.4.34",
            error="DeviceAssignmentMismatchError",
            match="DeviceAssignmentMismatch",
            reason="lowering ahead of time lets an internal exception out, with no message",
        )
    ],
)
def named_device_commits(env):
    """Naming the default device is not the same as None: now two devices meet, and that raises."""
    if env.compile_only:
        env.unsupported("arrays are made on devices, which are not here")
    first, _, third = (ones(device) for device in env.devices)
    add = lambda x, y: x + y  # noqa: E731 - a name for the message
    return Program(add, args=(first, third), reference=raises("ValueError", "incompatible devices"))


@probe(
    source="jax-ml/jax#26040",
    devices=3,
    deviations=[
        deviation(
            outcome="ok",
            reason="under jit the argument is unused, so its placement is lost",
            issue="jax-ml/jax#26040",
        )
    ],
)
def like_functions(env):
    """`zeros_like(x)` and its kin: on the device of `x`, eagerly as under jit.

    Under jit the argument is unused once its shape is known, so its placement is lost with it.
    """
    x = ones(env.devices[2])

    def landed(name, *fill):
        like = lambda x: getattr(namespace(), name)(x, *fill)  # noqa: E731 - it is jitted anew
        return {"eager": held(like(x)), "jit": held(jax.jit(like)(x))}

    seen = {name: landed(name) for name in ("zeros_like", "ones_like", "empty_like")}
    seen["full_like"] = landed("full_like", 2.0)
    there = label(env.devices[2])
    return Observed(seen, reference={name: {"eager": there, "jit": there} for name in seen})


@probe(source="jax-ml/jax#19470", devices=3)
def like_functions_moved(env):
    """`zeros_like(x, device=d)`: the device asked for wins over the one of `x`."""
    x = ones(env.devices[2])
    seen = {
        "zeros_like": held(namespace().zeros_like(x, device=env.devices[1])),
        "full_like": held(namespace().full_like(x, 2.0, device=env.devices[1])),
    }
    there = label(env.devices[1])
    return Observed(seen, reference={"zeros_like": there, "full_like": there})


@probe(source="jax-ml/jax#19470", devices=4)
def sharding_as_device(env):
    """Where a device may be given a sharding may be too: the array is made in pieces."""
    mesh = env.mesh(4, "x")
    sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("x"))
    made = namespace().arange(8, dtype=np.int32, device=sharding)
    pieces = [np.asarray(shard.data) for shard in made.addressable_shards]
    return Observed(pieces, reference=[np.array([2 * i, 2 * i + 1], np.int32) for i in range(4)])
