"""Asking the installed plugin which topologies it knows; run as a probe of its own."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from conformance.kit.case import Observed, Unsupported
from conformance.kit.topology import topology_devices

if TYPE_CHECKING:
    from collections.abc import Mapping

    from conformance.kit.env import Env


def ask(env: Env, topologies: Mapping[str, Mapping[str, Any]]) -> Observed:  # noqa: ARG001 - a probe
    """Ask for each topology.

    Args:
        env: Of the cell.
        topologies: Arguments of `get_topology_desc`, by name of the platform.

    Returns:
        How many are known; the artifact `answers` says of each its number of devices and their
        kind, or why not.
    """
    answers: dict[str, dict[str, Any]] = {}
    for name, asked in topologies.items():
        try:
            devices = topology_devices(asked)
            answers[name] = {"devices": len(devices), "kind": devices[0].device_kind}
        except Unsupported as reason:
            answers[name] = {"refused": str(reason)}
    known = sum("devices" in answer for answer in answers.values())
    return Observed({"known": known}, artifacts={"answers": json.dumps(answers)})
