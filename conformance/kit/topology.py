"""Devices that are not here, to be compiled for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jax.experimental import topologies

from conformance.kit.case import Unsupported

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


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
        said = " ".join(str(error).split())
        name = f"{topology['platform']} {topology['topology_name']}"
        problem = f"{name} cannot be compiled for: {type(error).__name__}: {said}"
        raise Unsupported(problem) from error
