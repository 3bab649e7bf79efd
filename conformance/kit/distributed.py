"""A rank of several: joining the others, and arrays that no single process holds."""

from __future__ import annotations

import os
import re
import socket
import time
from typing import TYPE_CHECKING, Any

import jax
import jaxlib
import numpy as np
from jax.experimental import multihost_utils

from conformance.kit.case import Unsupported

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

PROXIES = ("http_proxy", "https_proxy", "grpc_proxy", "all_proxy")
"""Variables that would send even what goes to the loopback address over a proxy."""
KNOCK = 0.005
"""Seconds between two attempts to reach the coordinator."""
HANDLES_DEVICES = (0, 4, 33)
"""The first jaxlib whose gloo collectives work with several devices in a process."""
_place: dict[str, Any] = {}
"""The rank that this process is; empty when it runs alone."""


def join(place: Mapping[str, Any]) -> None:
    """Make this process a rank, before it has a backend.

    Args:
        place: Its `number`, the `count` of ranks, how many `devices` each has, and the
            `coordinator`, `host:port`, which the first rank is to serve.

    Raises:
        Unsupported: If the release has no collectives between processes on CPU.
    """
    for name in PROXIES:
        os.environ.pop(name, None)
        os.environ.pop(name.upper(), None)
    try:
        jax.config.update("jax_cpu_collectives_implementation", "gloo")
    except (AttributeError, ValueError) as error:
        raise Unsupported(f"no gloo collectives between CPU processes: {error}") from error
    # A fault inside the library, which nothing but its version tells: its devices never meet, and
    # the set-up of their group ends the process after half a minute.
    if place["devices"] > 1 and _jaxlib() < HANDLES_DEVICES:
        raise Unsupported(
            f"gloo collectives of jaxlib {jaxlib.__version__} hang where a process has more than "
            f"one device, here {place['devices']}"
        )
    if place["number"]:
        _knock(place["coordinator"])
    jax.distributed.initialize(
        place["coordinator"],
        place["count"],
        place["number"],
        coordinator_bind_address=place["coordinator"],
    )
    _place.update(place)


def _jaxlib() -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", jaxlib.__version__)[:3]))


def _knock(coordinator: str) -> None:
    """Wait until the coordinator answers: gRPC itself would try again only after a second."""
    host, _, port = coordinator.rpartition(":")
    while True:
        try:
            socket.create_connection((host, int(port))).close()
        except ConnectionRefusedError:
            time.sleep(KNOCK)
        else:
            return


def joined() -> bool:
    """Say whether this process is one rank of several."""
    return bool(_place)


def device_numbers(devices: Collection[Any]) -> dict[Any, int]:
    """Return the numbers that devices are described by.

    Args:
        devices: Devices of one sharding.

    Returns:
        Their ids; among ranks, where ids have gaps, their places among all devices, so that a rank
        has consecutive ones. Devices that are all of this process are numbered within it: every
        rank says the same of what it does for itself.
    """
    if not joined():
        return {device: device.id for device in devices}
    own = all(device.process_index == jax.process_index() for device in devices)
    among = sorted(jax.local_devices() if own else jax.devices(), key=lambda device: device.id)
    return {device: number for number, device in enumerate(among)}


def spread(value: Any, sharding: Any) -> Any:
    """Return an array that every rank has whole as one of which each holds its part.

    Args:
        value: The array.
        sharding: A sharding over devices of several processes.
    """
    array = np.asarray(value)
    array = array.astype(jax.dtypes.canonicalize_dtype(array.dtype), copy=False)
    return jax.make_array_from_callback(array.shape, sharding, lambda index: array[index])


def gathered(array: jax.Array) -> np.ndarray:
    """Return an array whole, whichever ranks hold it; all of them must ask."""
    if array.is_fully_addressable:
        return np.array(array)
    return np.asarray(multihost_utils.process_allgather(array, tiled=True))


def described(leaf: Any) -> Any:
    """Return an argument by shape and dtype if it is an array that lies in this process.

    Where it goes is for the program to say; only then can it be placed there.
    """
    if not _is_own(leaf):
        return leaf
    dtype = jax.dtypes.canonicalize_dtype(leaf.dtype)
    weak = {"weak_type": True} if getattr(leaf, "weak_type", False) else {}  # unknown to 0.4.31
    return jax.ShapeDtypeStruct(leaf.shape, dtype, **weak)


def placed(tree: Any, shardings: Any) -> Any:
    """Return arguments placed where a compiled program wants them.

    Args:
        tree: Arguments, as the case gave them.
        shardings: Its `input_shardings`, in the same structure; None for one it does not use.
    """
    leaves, structure = jax.tree_util.tree_flatten(tree)
    wanted = structure.flatten_up_to(shardings)
    return structure.unflatten(
        spread(leaf, sharding) if _is_own(leaf) and _is_spread(sharding) else leaf
        for leaf, sharding in zip(leaves, wanted, strict=True)
    )


def _is_own(leaf: Any) -> bool:
    """Say whether a leaf is an array that lies whole in this process, on no stated device."""
    if isinstance(leaf, jax.Array):
        key = jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key)
        return not key and not getattr(leaf, "committed", getattr(leaf, "_committed", False))
    return isinstance(leaf, (np.ndarray, np.generic))


def _is_spread(sharding: Any) -> bool:
    return sharding is not None and not sharding.is_fully_addressable
