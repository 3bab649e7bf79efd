"""Ranks of a job with several processes, and arrays that are distributed over them."""

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
"""Variables that would send connections to the loopback address over a proxy."""
CONNECT_INTERVAL = 0.005
"""Seconds between two attempts to connect to the coordinator."""
FIRST_WITH_DEVICES = (0, 4, 33)
"""The first jaxlib whose gloo collectives work with several devices in a process."""
_rank: dict[str, Any] = {}
"""Rank of this process, empty if it is the only process."""


def join(rank: Mapping[str, Any]) -> None:
    """Make this process a rank; call it before a backend is initialised.

    Args:
        rank: `number` of the rank, `count` of all ranks, number of `devices` of each, and address
            of the `coordinator`, `host:port`, which the first rank serves.

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
    # A bug of the library that only its version reveals: its devices never find each other, and
    # the set-up of their group ends the process after half a minute.
    if rank["devices"] > 1 and _get_jaxlib_version() < FIRST_WITH_DEVICES:
        raise Unsupported(
            f"gloo collectives of jaxlib {jaxlib.__version__} hang where a process has more than "
            f"one device, found {rank['devices']}"
        )
    if rank["number"]:
        _wait_for_coordinator(rank["coordinator"])
    jax.distributed.initialize(
        rank["coordinator"],
        rank["count"],
        rank["number"],
        coordinator_bind_address=rank["coordinator"],
    )
    _rank.update(rank)


def _get_jaxlib_version() -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", jaxlib.__version__)[:3]))


def _wait_for_coordinator(coordinator: str) -> None:
    """Wait until the coordinator accepts connections; gRPC itself would retry after a second."""
    host, _, port = coordinator.rpartition(":")
    while True:
        try:
            socket.create_connection((host, int(port))).close()
        except ConnectionRefusedError:
            time.sleep(CONNECT_INTERVAL)
        else:
            return


def is_distributed() -> bool:
    """Say whether this process is one of several ranks."""
    return bool(_rank)


def number_devices(devices: Collection[Any]) -> dict[Any, int]:
    """Return the numbers of devices for descriptions of shardings.

    Args:
        devices: Devices of one sharding.

    Returns:
        Ids of the devices. Among ranks, where ids have gaps, consecutive indices among all devices;
        if all devices belong to this process, indices within it, so that all ranks describe their
        arrays equally.
    """
    if not is_distributed():
        return {device: device.id for device in devices}
    own = all(device.process_index == jax.process_index() for device in devices)
    numbered = sorted(jax.local_devices() if own else jax.devices(), key=lambda device: device.id)
    return {device: number for number, device in enumerate(numbered)}


def spread(value: Any, sharding: Any) -> Any:
    """Return an array distributed over ranks.

    Args:
        value: NumPy array, the same in every rank.
        sharding: Sharding over devices of several processes.
    """
    array = np.asarray(value)
    # As `jax.device_put` does: without x64, float64 becomes float32.
    array = array.astype(jax.dtypes.canonicalize_dtype(array.dtype), copy=False)
    return jax.make_array_from_callback(array.shape, sharding, lambda index: array[index])


def gather(array: jax.Array) -> np.ndarray:
    """Return a whole distributed array; all ranks must call it."""
    if array.is_fully_addressable:
        return np.array(array)
    return np.asarray(multihost_utils.process_allgather(array, tiled=True))


def describe_argument(leaf: Any) -> Any:
    """Return the shape and dtype of an array that has no sharding; any other argument unchanged.

    The compiled program determines its sharding, see `place_arguments`.
    """
    if not _is_own(leaf):
        return leaf
    dtype = jax.dtypes.canonicalize_dtype(leaf.dtype)
    # Only if it is needed: ShapeDtypeStruct of 0.4.31 has no keyword `weak_type`.
    weak = {"weak_type": True} if getattr(leaf, "weak_type", False) else {}
    return jax.ShapeDtypeStruct(leaf.shape, dtype, **weak)


def place_arguments(tree: Any, shardings: Any) -> Any:
    """Return arguments with the shardings of a compiled program.

    Args:
        tree: Arguments of the case.
        shardings: `input_shardings` of the program, in the same structure; None for an unused
            argument.
    """
    leaves, structure = jax.tree_util.tree_flatten(tree)
    wanted = structure.flatten_up_to(shardings)
    return structure.unflatten(
        spread(leaf, sharding) if _is_own(leaf) and _is_spread(sharding) else leaf
        for leaf, sharding in zip(leaves, wanted, strict=True)
    )


def _is_own(leaf: Any) -> bool:
    """Say whether a leaf is a whole array in this process without a requested device."""
    if isinstance(leaf, jax.Array):
        # A key has no NumPy array from which other ranks could take their part.
        key = jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key)
        return not key and not getattr(leaf, "committed", getattr(leaf, "_committed", False))
    return isinstance(leaf, (np.ndarray, np.generic))


def _is_spread(sharding: Any) -> bool:
    return sharding is not None and not sharding.is_fully_addressable
