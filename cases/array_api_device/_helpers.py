"""What the topics of this family share: the namespace, and devices in stable words."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np


def namespace():
    """Return jax's array API namespace: a module of its own up to 0.4.31, then jax.numpy."""
    if hasattr(jnp, "__array_namespace_info__"):
        return jnp
    import jax.experimental.array_api as experimental  # noqa: PLC0415 - gone later

    return experimental


def info():
    """Return the namespace's inspection object."""
    return namespace().__array_namespace_info__()


def ones(device=None):
    """Return three ones that are put on a device, where to make them there takes two programs."""
    return namespace().asarray(np.ones(3, np.float32), device=device)


def label(device):
    """Return a device as `platform:id`, None as `None`, else the name of the type."""
    if device is None:
        return "None"
    return (
        f"{device.platform}:{device.id}" if hasattr(device, "platform") else type(device).__name__
    )


def held(x):
    """Return the devices that hold an array, in words that do not use `.device`."""
    return " ".join(sorted(label(device) for device in x.devices()))
