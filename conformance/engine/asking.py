"""Asking a cell's own plugin which platforms of its kind it knows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from conformance.cells.platform.platform import get_platform
from conformance.engine.checking import worker_probe
from conformance.engine.job import Job
from conformance.errors import InfrastructureError
from conformance.model.outcome import Outcome

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from conformance.engine.client import Worker
    from conformance.engine.job import PlannedCell


def ask_plugin(
    worker: Worker, planned: PlannedCell, platforms: Iterable[str]
) -> Mapping[str, Mapping[str, Any]]:
    """Ask the plugin installed in a cell for the devices of some platforms.

    Args:
        worker: A worker of the cell.
        planned: The cell.
        platforms: Names of compile-only platforms of the cell's kind.

    Returns:
        By name `devices` and their `kind`, or why the plugin has them not, as `refused`.

    Raises:
        InfrastructureError: If the plugin does not answer: it aborts, or takes too long.
    """
    topologies = {name: dict(get_platform(name).topology) for name in platforms}
    case = worker_probe("topology_probe", "ask", {"topologies": topologies})
    finished = worker.run(Job(case=case, planned=planned))
    if finished.outcome is not Outcome.OK:
        said = finished.error.message if finished.error is not None else ""
        raise InfrastructureError(
            f"{planned.cell.id}: its plugin does not answer: {finished.outcome}: {said}"
        )
    answers: dict[str, dict[str, Any]] = msgspec.json.decode(finished.blobs["answers"])
    return answers
