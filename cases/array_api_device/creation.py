"""Every listed device is accepted as a `device` argument, and the array is placed on it.

`devices()` would be an empty promise if a creation function refused one of its entries. This
includes None, which means uncommitted: `device=None` must be accepted everywhere, and give an array
that follows the arrays it is combined with, while an explicit device commits the array.
"""

from __future__ import annotations

import jax
import numpy as np

from conformance.kit import Observed, Program, deviation, probe, program, raises

from ._helpers import label, list_devices, namespace, ones

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
    """Eight creation functions accept each device, and None, which is the first device."""
    devices = [None, *env.devices]
    observed = {
        f"{name} {label(device)}": list_devices(getattr(namespace(), name)(*args, device=device))
        for name, args in CREATE.items()
        for device in devices
    }
    expected = {
        f"{name} {label(device)}": label(device or env.devices[0])
        for name in CREATE
        for device in devices
    }
    return Observed(observed, reference=expected)


@probe(source="data-apis/array-api#835", devices=3)
def none_is_uncommitted(env):
    """An array made with `device=None` follows the array that it is added to."""
    xp, other = namespace(), env.devices[2]
    total = xp.ones(3, device=None) + xp.ones(3, device=other)
    return Observed({"on": list_devices(total)}, reference={"on": label(other)})


INTERNAL_ERROR_AT_LOWERING = deviation(
    "jax<0.4.34",
    error="DeviceAssignmentMismatchError",
    match="DeviceAssignmentMismatch",
    reason="lowering ahead of time raised an internal exception without a message",
)


@program(source="data-apis/array-api#835", devices=3, deviations=[INTERNAL_ERROR_AT_LOWERING])
def named_device_commits(env):
    """Naming the default device commits, unlike None: adding arrays of two devices is an error."""
    if env.compile_only:
        env.unsupported("the arrays are made on devices, which a compile-only cell lacks")
    first, _, third = (ones(device) for device in env.devices)
    add = lambda x, y: x + y  # noqa: E731 - short
    return Program(add, args=(first, third), reference=raises("ValueError", "incompatible devices"))


PLACEMENT_LOST_UNDER_JIT = deviation(
    outcome="ok",
    reason="under jit the argument is unused, so its placement is lost",
    issue="jax-ml/jax#26040",
)


@probe(source="jax-ml/jax#26040", devices=3, deviations=[PLACEMENT_LOST_UNDER_JIT])
def like_functions(env):
    """`zeros_like(x)` and similar functions use the device of `x`, eagerly and under jit.

    Under jit the argument is unused as soon as its shape is known, so its placement is lost.
    """
    x = ones(env.devices[2])

    def observe(name, *fill):
        like = lambda x: getattr(namespace(), name)(x, *fill)  # noqa: E731 - a new function to jit
        return {"eager": list_devices(like(x)), "jit": list_devices(jax.jit(like)(x))}

    observed = {name: observe(name) for name in ("zeros_like", "ones_like", "empty_like")}
    observed["full_like"] = observe("full_like", 2.0)
    home = label(env.devices[2])
    expected = {name: {"eager": home, "jit": home} for name in observed}
    return Observed(observed, reference=expected)


@probe(source="jax-ml/jax#19470", devices=3)
def like_functions_moved(env):
    """`zeros_like(x, device=d)` uses the requested device, not the device of `x`."""
    x = ones(env.devices[2])
    observed = {
        "zeros_like": list_devices(namespace().zeros_like(x, device=env.devices[1])),
        "full_like": list_devices(namespace().full_like(x, 2.0, device=env.devices[1])),
    }
    target = label(env.devices[1])
    return Observed(observed, reference={"zeros_like": target, "full_like": target})


@probe(source="jax-ml/jax#19470", devices=4)
def sharding_as_device(env):
    """A sharding is accepted in place of a device: the array is made in shards."""
    mesh = env.mesh(4, "x")
    sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("x"))
    array = namespace().arange(8, dtype=np.int32, device=sharding)
    shards = [np.asarray(shard.data) for shard in array.addressable_shards]
    return Observed(shards, reference=[np.array([2 * i, 2 * i + 1], np.int32) for i in range(4)])
