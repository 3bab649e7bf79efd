"""`jax.default_device`, compared with the default device of the array API.

In the standard, `default_device()` is the device that a creation function uses if it is called
without one. jax has such a setting, yet `default_device()` is None: an array made without a device
is uncommitted, while naming the device would commit the array. So the setting shows in the
placement of arrays, and not in the inspection API.
"""

from __future__ import annotations

import jax
import numpy as np

from conformance.kit import Observed, defaults, deviation, probe

from ._helpers import info, label, list_devices, namespace, ones

defaults(devices=3)


def find_placements():
    """Return the devices of arrays that are made without a device, in four ways."""
    xp = namespace()
    return {
        "ones": list_devices(xp.ones(3)),
        "none": list_devices(xp.ones(3, device=None)),
        "told": list_devices(xp.ones(3, device=info().default_device())),
        "jit": list_devices(jax.jit(lambda: xp.ones(3))()),
    }


def expect_everywhere(device):
    """Return the value of `find_placements` if all arrays are on one device."""
    return dict.fromkeys(("ones", "none", "told", "jit"), label(device))


@probe(source="jax-ml/jax#10959")
def context(env):
    """The context manager decides where arrays are made, also nested, and nothing persists."""
    first, second, third = env.devices
    observed = {"before": find_placements()}
    with jax.default_device(third):
        with jax.default_device(second):
            observed["inner"] = find_placements()
        observed["outer"] = find_placements()
    observed["after"] = find_placements()
    devices = {"before": first, "inner": second, "outer": third, "after": first}
    return Observed(observed, reference={key: expect_everywhere(devices[key]) for key in devices})


@probe(source="data-apis/array-api#835")
def configured(env):
    """The global setting moves new arrays, and `default_device()` stays None."""
    jax.config.update("jax_default_device", env.devices[2])
    return Observed(find_placements(), reference=expect_everywhere(env.devices[2]))


ONLY_DEVICE_OBJECTS = deviation(
    "jax<0.4.36",
    error="ValueError",
    match="must be passed a Device object",
    reason="only device objects were accepted",
    issue="jax-ml/jax#24751",
)


@probe(source="jax-ml/jax#24751", deviations=[ONLY_DEVICE_OBJECTS])
def named_by_platform(env):
    """The name of a platform in place of a device selects the first device of the platform."""
    with jax.default_device(env.devices[2]), jax.default_device(env.devices[0].platform):
        return Observed(find_placements(), reference=expect_everywhere(env.devices[0]))


@probe(source="data-apis/array-api#835")
def stays_uncommitted(env):
    """An array made under the setting follows a committed array, even outside of the context."""
    with jax.default_device(env.devices[2]):
        x = namespace().ones(3)
    total = x + ones(env.devices[1])
    observed = {"made": list_devices(x), "total": list_devices(total)}
    return Observed(
        observed, reference={"made": label(env.devices[2]), "total": label(env.devices[1])}
    )


@probe(source="data-apis/array-api#835")
def committed_wins(env):
    """Computation on a committed array stays on its device, regardless of the setting."""
    x = ones(env.devices[1])
    with jax.default_device(env.devices[2]):
        observed = {"eager": list_devices(x * 2), "jit": list_devices(jax.jit(lambda x: x * 2)(x))}
    home = label(env.devices[1])
    return Observed(observed, reference={"eager": home, "jit": home})


@probe(
    source="jax-ml/jax@92faff137ef9",
    releases="jax>=0.7.1",
    records="nothing documented says whether a default device or the mesh of a context comes first",
)
def in_a_mesh_context(env):
    """Within `jax.set_mesh`, `jax.default_device` places nothing but NumPy arrays, up to 0.10.0."""
    mesh = jax.make_mesh((3,), ("x",))
    with jax.set_mesh(mesh), jax.default_device(env.devices[2]):
        return {
            **find_placements(),
            "numpy": list_devices(namespace().asarray(np.arange(3.0, dtype=np.float32))),
            "number": list_devices(namespace().asarray(1.0)),
            "put": list_devices(jax.device_put(np.float32([1, 2, 3]))),
        }
