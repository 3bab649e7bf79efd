"""Helpers for this family: the array API namespace, and stable names of devices."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np


def namespace():
    """Return the array API namespace: a separate module up to 0.4.31, then jax.numpy."""
    if hasattr(jnp, "__array_namespace_info__"):
        return jnp
    import jax.experimental.array_api as experimental  # noqa: PLC0415 - removed in 0.5.0

    return experimental


def info():
    """Return the inspection object of the namespace."""
    return namespace().__array_namespace_info__()


def ones(device=None):
    """Return three ones, put on a device; creating them there would take two programs."""
    return namespace().asarray(np.ones(3, np.float32), device=device)


def label(device):
    """Return a device as `platform:id`, None as `None`, anything else as the name of its type."""
    if device is None:
        return "None"
    return (
        f"{device.platform}:{device.id}" if hasattr(device, "platform") else type(device).__name__
    )


def list_devices(x):
    """Return the names of the devices of an array, without use of its attribute `device`."""
    return " ".join(sorted(label(device) for device in x.devices()))
