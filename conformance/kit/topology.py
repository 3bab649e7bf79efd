"""Devices that are not here, to be compiled for."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from jax.experimental import topologies

from conformance.kit.case import Unsupported

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

_ADDRESS = re.compile(r"0x[0-9a-f]{4,}")
_FOLDER = re.compile(r"(?<!\S)/(?:[^\s/]+/)+")


def topology_devices(topology: Mapping[str, Any]) -> list[Any]:
    """Return the devices of a topology.

    Args:
        topology: Arguments of `jax.experimental.topologies.get_topology_desc`.

    Raises:
        Unsupported: If the installed plugin does not know it, or the release has no plugin.
    """
    try:
        return list(topologies.get_topology_desc(**topology).devices)
    except Exception as error:
        raise refused(topology, error) from error


def refused(topology: Mapping[str, Any], error: Exception) -> Unsupported:
    """Return why a topology is not compiled for, the same wherever a release is installed.

    Args:
        topology: Arguments of `jax.experimental.topologies.get_topology_desc`.
        error: What the release raised; addresses and folders in its message are left out.
    """
    said = " ".join(_ADDRESS.sub("0x...", _FOLDER.sub("", str(error))).split())
    name = f"{topology['platform']} {topology['topology_name']}"
    return Unsupported(f"{name} cannot be compiled for: {type(error).__name__}: {said}")
