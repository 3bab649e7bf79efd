"""`jax.default_device` against the array API's default device.

The standard's `default_device()` names the device a creation function uses when none is given.
jax has such a setting, yet answers None: what is made there is uncommitted, which naming the device
would not be. So the setting is seen in where arrays land, and nowhere in the inspection.
"""

from __future__ import annotations

import jax

from conformance.kit import Observed, deviation, probe

from ._helpers import held, info, label, namespace, ones


def lands():
    """Return where arrays made without a device land, by four ways of making one."""
    xp = namespace()
    return {
        "ones": held(xp.ones(3)),
        "none": held(xp.ones(3, device=None)),
        "told": held(xp.ones(3, device=info().default_device())),
        "jit": held(jax.jit(lambda: xp.ones(3))()),
    }


def everywhere(device):
    """Return what `lands` should say if all of it is on one device."""
    return dict.fromkeys(("ones", "none", "told", "jit"), label(device))


@probe(source="jax-ml/jax#10959", devices=3)
def context(env):
    """Before, inside and after the context manager, nested once; nothing is remembered."""
    first, second, third = env.devices
    seen = {"before": lands()}
    with jax.default_device(third):
        with jax.default_device(second):
            seen["inner"] = lands()
        seen["outer"] = lands()
    seen["after"] = lands()
    wanted = {"before": first, "inner": second, "outer": third, "after": first}
    return Observed(seen, reference={key: everywhere(wanted[key]) for key in wanted})


@probe(source="data-apis/array-api#835", devices=3)
def configured(env):
    """The setting made global: it moves where arrays land, and `default_device()` stays None."""
    jax.config.update("jax_default_device", env.devices[2])
    return Observed(lands(), reference=everywhere(env.devices[2]))


@probe(
    source="jax-ml/jax#24751",
    devices=3,
    deviations=[
        deviation(
            "jax<0.4.36",
            error="ValueError",
            match="must be passed a Device object",
            reason="only device objects are taken",
            issue="jax-ml/jax#24751",
        ),
    ],
)
def named_by_platform(env):
    """A platform's name in place of a device: its first device."""
    with jax.default_device(env.devices[2]), jax.default_device(env.devices[0].platform):
        return Observed(lands(), reference=everywhere(env.devices[0]))


@probe(source="data-apis/array-api#835", devices=3)
def stays_uncommitted(env):
    """An array made under the setting follows a committed one, even out of the context."""
    with jax.default_device(env.devices[2]):
        x = namespace().ones(3)
    total = x + ones(env.devices[1])
    seen = {"made": held(x), "total": held(total)}
    return Observed(seen, reference={"made": label(env.devices[2]), "total": label(env.devices[1])})


@probe(source="data-apis/array-api#835", devices=3)
def committed_wins(env):
    """Computation on a committed array stays with it, whatever the setting."""
    x = ones(env.devices[1])
    with jax.default_device(env.devices[2]):
        seen = {"eager": held(x * 2), "jit": held(jax.jit(lambda x: x * 2)(x))}
    there = label(env.devices[1])
    return Observed(seen, reference={"eager": there, "jit": there})
