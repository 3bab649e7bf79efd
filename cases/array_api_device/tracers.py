"""Devices inside transformations: a tracer has no device, and a `device` argument is ignored.

Under jit, a program runs on one set of devices. Its arguments and shardings decide which, not the
code of the function. So `.device` is missing, and `device=` silently has no effect.
"""

from __future__ import annotations

import jax

from conformance.kit import Observed, defaults, deviation, probe

from ._helpers import label, list_devices, namespace, ones

defaults(devices=3)

TRANSFORMS = {
    "jit": jax.jit,
    "vmap": jax.vmap,
    "grad": lambda f: jax.grad(lambda x: f(x).sum()),
}


TRACERS_HAVE_NO_DEVICE = deviation(
    error="AttributeError",
    match="has no attribute device",
    reason="tracers have no device",
    issue="jax-ml/jax#26000",
)


@probe(
    source="jax-ml/jax#26000",
    params={"jit": {"how": "jit"}, "vmap": {"how": "vmap"}, "grad": {"how": "grad"}},
    deviations=[TRACERS_HAVE_NO_DEVICE],
)
def device_of_tracer(env, how):
    """`x.device` fails in a transformed function; the standard requires it of every array."""
    observed = []

    def body(x):
        observed.append(label(x.device))
        return x

    TRANSFORMS[how](body)(ones(env.devices[2]))
    return Observed(observed, reference=[label(env.devices[2])])


@probe(source="jax-ml/jax#26000")
def device_or_none(env):
    """`getattr(x, "device", None)` is the portable way: None leaves the placement to jax."""

    def body(x):
        return x * x + namespace().ones(x.shape, device=getattr(x, "device", None))

    x = ones(env.devices[2])
    observed = {how: list_devices(transform(body)(x)) for how, transform in TRANSFORMS.items()}
    return Observed(observed, reference=dict.fromkeys(TRANSFORMS, label(env.devices[2])))


DEVICE_IGNORED_UNDER_JIT = deviation(
    params=["jit"],
    outcome="ok",
    reason="jit decides the placement, and ignores devices given in the function",
    issue="jax-ml/jax#26000",
)


@probe(
    source="jax-ml/jax#26000",
    params={"eager": {"jit": False}, "jit": {"jit": True}},
    deviations=[DEVICE_IGNORED_UNDER_JIT],
)
def device_argument(env, jit):
    """`zeros(3, device=d)` in a jitted function makes the array on the default device."""

    def body():
        return namespace().zeros(3, device=env.devices[1])

    out = (jax.jit(body) if jit else body)()
    return Observed({"on": list_devices(out)}, reference={"on": label(env.devices[1])})


NO_TO_DEVICE_UNDER_JIT = deviation(
    "jax<0.4.31",
    params=["jit"],
    error="AttributeError",
    match="has no attribute to_device",
    reason="only concrete arrays had to_device",
    issue="jax-ml/jax#22597",
)
MOVE_IGNORED_UNDER_JIT = deviation(
    "jax>=0.4.31",
    params=["jit"],
    outcome="ok",
    reason="jit decides the placement, and ignores devices given in the function",
    issue="jax-ml/jax#6040",
)


@probe(
    source="jax-ml/jax#6040",
    params={"eager": {"jit": False}, "jit": {"jit": True}},
    deviations=[NO_TO_DEVICE_UNDER_JIT, MOVE_IGNORED_UNDER_JIT],
)
def to_device_inside(env, jit):
    """`x.to_device(d)` in a jitted function has no effect."""

    def body(x):
        return x.to_device(env.devices[1]) * 2

    out = (jax.jit(body) if jit else body)(ones())
    return Observed({"on": list_devices(out)}, reference={"on": label(env.devices[1])})


@probe(source="jax-ml/jax#26000")
def out_shardings(env):
    """The alternative: `out_shardings` of the jit, which decides the placement."""
    sharding = jax.sharding.SingleDeviceSharding(env.devices[1])
    out = jax.jit(lambda: namespace().zeros(3), out_shardings=sharding)()
    return Observed({"on": list_devices(out)}, reference={"on": label(env.devices[1])})


NO_TO_DEVICE_UNDER_GRAD = deviation(
    "jax<0.4.31",
    error="AttributeError",
    match="has no attribute to_device",
    reason="only concrete arrays had to_device",
    issue="jax-ml/jax#22597",
)


@probe(source="jax-ml/jax#22597", deviations=[NO_TO_DEVICE_UNDER_GRAD])
def gradient_comes_home(env):
    """The gradient of a function that calls `to_device` is on the device of the argument."""
    x = ones(env.devices[2])
    out = jax.grad(lambda x: (x.to_device(env.devices[1]) ** 2).sum())(x)
    return Observed({"on": list_devices(out)}, reference={"on": label(env.devices[2])})


GRADIENT_ON_DEFAULT_DEVICE = deviation(
    "jax>=0.5.1",
    params=["of_sum"],
    outcome="ok",
    reason="the gradient is made without the argument, on the default device",
    issue="jax-ml/jax#26040",
)


@probe(
    source="jax-ml/jax#26040",
    params={"of_square": {"power": 2}, "of_sum": {"power": 1}},
    deviations=[GRADIENT_ON_DEFAULT_DEVICE],
)
def gradient_placement(env, power):
    """The gradient of `sum(x ** n)` is on the device of `x`, also for n = 1.

    The gradient of a plain sum is ones for every `x`: it is made without `x`, and from 0.5.1 it is
    on the default device.
    """
    x = ones(env.devices[2])
    out = jax.grad(lambda x: (x * x if power == 2 else x).sum())(x)
    return Observed({"on": list_devices(out)}, reference={"on": label(env.devices[2])})
