"""Probes of the worker itself: whether a cell can be served, and the topologies of its plugin."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import msgspec

from conformance.cells.platforms import get_platform
from conformance.corpus.project import PACKAGE
from conformance.engine.job import Job
from conformance.engine.workers.client import WorkerDiedError
from conformance.errors import ConformanceError, InfrastructureError
from conformance.model.case import Case
from conformance.model.outcome import Outcome, Stage

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from conformance.engine.job import PlannedCell
    from conformance.engine.workers.client import Worker


TIMEOUT: Final = 300.0
"""Seconds that a probe may take: initialising a pod of accelerators is slow."""


class UnsupportedCellError(ConformanceError):
    """A cell that the release or this host cannot serve: its jobs are `unsupported`."""


def needs_check(planned: PlannedCell) -> bool:
    """Say whether a cell has a platform, an option or a flag that may be refused."""
    # A plain CPU cell works on every release; a probe would only delay its first job.
    cell = planned.cell
    return bool(cell.place.compile_only or cell.place.real or cell.config or cell.xla_flags)


def check_cell(worker: Worker, planned: PlannedCell) -> None:
    """Check the config, the XLA flags, the platform and the devices of a cell.

    Args:
        worker: Worker of the cell.
        planned: Cell to check.

    Raises:
        UnsupportedCellError: If the release or this host refuses one of them.
        InfrastructureError: If the check fails for another reason.
        WorkerDiedError: If the check was ended by SIGKILL.
    """
    # A single process suffices: the release refuses each rank for the same reason.
    alone = replace(planned.cell, platform="cpu") if planned.cell.place.processes > 1 else None
    probed = replace(planned, cell=alone) if alone else planned
    # A CPU has as many devices as a case needs, a topology as many as its name states.
    devices = probed.cell.devices if probed.cell.place.real else 1
    case = make_worker_probe("check_devices", {"devices": devices})
    finished = worker.run(Job(case=case, planned=probed))
    if finished.outcome is Outcome.OK:
        return
    if finished.killed:
        raise WorkerDiedError(f"{planned.cell.id}: the look at its devices was ended by SIGKILL")
    error = finished.error
    message = error.message if error is not None else str(finished.outcome)
    if finished.outcome is Outcome.UNSUPPORTED:
        raise UnsupportedCellError(f"jax {planned.release}: {message}")
    # `update_config` raises in this stage, before any device is touched.
    if finished.outcome is Outcome.RAISED and finished.stage is Stage.IMPORT:
        raise UnsupportedCellError(f"jax {planned.release}: config: {message}")
    raise InfrastructureError(f"{planned.cell.id}: cannot look at its devices: {message}")


def make_worker_probe(name: str, params: Mapping[str, Any], topic: str = "cell_probes") -> Case:
    """Return a probe of the worker itself, which is not a case of any project.

    Args:
        name: Name of the function.
        params: Keyword arguments of the function.
        topic: Module of `conformance.worker` that has the function.
    """
    return Case(
        id=f"worker/{name}",
        family="worker",
        topic=topic,
        name=name,
        kind="probe",
        file=PACKAGE / "worker" / f"{topic}.py",
        line=1,
        content_hash="",
        params=params,
        timeout=TIMEOUT,
    )


def query_topologies(
    worker: Worker, planned: PlannedCell, platforms: Iterable[str]
) -> Mapping[str, Mapping[str, Any]]:
    """Query the plugin installed in a cell for the devices of some platforms.

    Args:
        worker: Worker of the cell.
        planned: Cell with the plugin.
        platforms: Names of compile-only platforms of the cell's kind.

    Returns:
        For each name the number of `devices` and their `kind`, or the reason as `refused`.

    Raises:
        InfrastructureError: If the plugin aborts, or takes too long.
    """
    topologies = {name: dict(get_platform(name).topology) for name in platforms}
    case = make_worker_probe("describe_topologies", {"topologies": topologies})
    finished = worker.run(Job(case=case, planned=planned))
    if finished.outcome is not Outcome.OK:
        message = finished.error.message if finished.error is not None else ""
        raise InfrastructureError(
            f"{planned.cell.id}: its plugin does not answer: {finished.outcome}: {message}"
        )
    answers: dict[str, dict[str, Any]] = msgspec.json.decode(finished.blobs["answers"])
    return answers
