"""Devices inside transformations: a tracer has no device, and a device given there is ignored.

Under jit one program runs on one set of devices, decided by its arguments and shardings, not by
what the function says. So `.device` is missing and `device=` is without effect, silently.
"""

from __future__ import annotations

import jax

from conformance.kit import Observed, deviation, probe

from ._helpers import held, label, namespace, ones

TRANSFORMS = {
    "jit": jax.jit,
    "vmap": jax.vmap,
    "grad": lambda f: jax.grad(lambda x: f(x).sum()),
}


@probe(
    source="jax-ml/jax#26000",
    devices=3,
    params={"jit": {"how": "jit"}, "vmap": {"how": "vmap"}, "grad": {"how": "grad"}},
    deviations=[
        deviation(
            error="AttributeError",
            match="has no attribute device",
            reason="tracers have no device",
            issue="jax-ml/jax#26000",
        ),
    ],
)
def device_of_tracer(env, how):
    """`x.device` in a transformed function: the standard requires it of every array."""
    seen = []

    def body(x):
        seen.append(label(x.device))
        return x

    TRANSFORMS[how](body)(ones(env.devices[2]))
    return Observed(seen, reference=[label(env.devices[2])])


@probe(source="jax-ml/jax#26000", devices=3)
def device_or_none(env):
    """The portable way: `getattr(x, "device", None)`, and None leaves the placement to jax."""

    def body(x):
        return x * x + namespace().ones(x.shape, device=getattr(x, "device", None))

    x = ones(env.devices[2])
    seen = {how: held(transform(body)(x)) for how, transform in TRANSFORMS.items()}
    return Observed(seen, reference=dict.fromkeys(TRANSFORMS, label(env.devices[2])))


@probe(
    source="jax-ml/jax#26000",
    devices=3,
    params={"eager": {"jit": False}, "jit": {"jit": True}},
    deviations=[
        deviation(
            params=["jit"],
            outcome="ok",
            reason="placement is decided by the jit, what is said inside is dropped",
            issue="jax-ml/jax#26000",
        ),
    ],
)
def device_argument(env, jit):
    """`zeros(3, device=d)` in a function: under jit the array is on the default device."""

    def body():
        return namespace().zeros(3, device=env.devices[1])

    out = (jax.jit(body) if jit else body)()
    return Observed({"on": held(out)}, reference={"on": label(env.devices[1])})


@probe(
    source="jax-ml/jax#6040",
    devices=3,
    params={"eager": {"jit": False}, "jit": {"jit": True}},
    deviations=[
        deviation(
            "jax<0.4.31",
            params=["jit"],
            error="AttributeError",
            match="has no attribute to_device",
            reason="only concrete arrays have to_device",
            issue="jax-ml/jax#22597",
        ),
        deviation(
            "jax>=0.4.31",
            params=["jit"],
            outcome="ok",
            reason="placement is decided by the jit, what is said inside is dropped",
            issue="jax-ml/jax#6040",
        ),
    ],
)
def to_device_inside(env, jit):
    """`x.to_device(d)` in a function: under jit it does nothing."""

    def body(x):
        return x.to_device(env.devices[1]) * 2

    out = (jax.jit(body) if jit else body)(ones())
    return Observed({"on": held(out)}, reference={"on": label(env.devices[1])})


@probe(source="jax-ml/jax#26000", devices=3)
def out_shardings(env):
    """What to do instead: say it on the jit, where placement is decided."""
    there = jax.sharding.SingleDeviceSharding(env.devices[1])
    out = jax.jit(lambda: namespace().zeros(3), out_shardings=there)()
    return Observed({"on": held(out)}, reference={"on": label(env.devices[1])})


@probe(
    source="jax-ml/jax#22597",
    devices=3,
    deviations=[
        deviation(
            "jax<0.4.31",
            error="AttributeError",
            match="has no attribute to_device",
            reason="only concrete arrays have to_device",
            issue="jax-ml/jax#22597",
        ),
    ],
)
def gradient_comes_home(env):
    """Differentiate through `to_device`: the gradient is on the device of the argument."""
    x = ones(env.devices[2])
    out = jax.grad(lambda x: (x.to_device(env.devices[1]) ** 2).sum())(x)
    return Observed({"on": held(out)}, reference={"on": label(env.devices[2])})


@probe(
    source="jax-ml/jax#26040",
    devices=3,
    params={"of_square": {"power": 2}, "of_sum": {"power": 1}},
    deviations=[
        deviation(
            "jax>=0.5.1",
            params=["of_sum"],
            outcome="ok",
            reason="the gradient is made without the argument, on the default device",
            issue="jax-ml/jax#26040",
        ),
    ],
)
def gradient_placement(env, power):
    """The gradient of `sum(x ** n)` is where `x` is, also for n = 1.

    The gradient of a plain sum is ones, whatever `x` holds: it is made afresh, and from
    0.5.1 lands on the default device.
    """
    x = ones(env.devices[2])
    out = jax.grad(lambda x: (x * x if power == 2 else x).sum())(x)
    return Observed({"on": held(out)}, reference={"on": label(env.devices[2])})
