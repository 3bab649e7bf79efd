"""Trying a cell once, before its jobs: what it cannot do is one reason, not a pile of failures."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from conformance.corpus.project import PACKAGE
from conformance.engine.client import WorkerDiedError
from conformance.engine.job import Job
from conformance.errors import ConformanceError, InfrastructureError
from conformance.model.case import Case
from conformance.model.outcome import Outcome, Stage

if TYPE_CHECKING:
    from collections.abc import Mapping

    from conformance.engine.client import Worker
    from conformance.engine.job import PlannedCell

TIMEOUT: Final = 300.0
"""Seconds that looking at the devices may take: the first look at a pod of accelerators is slow."""


class UnsupportedCellError(ConformanceError):
    """A cell that the release or this host cannot serve: its jobs are `unsupported`."""


def needs_check(planned: PlannedCell) -> bool:
    """Say whether there is anything about a cell that may not be had."""
    cell = planned.cell
    return bool(cell.place.compile_only or cell.place.real or cell.config or cell.xla_flags)


def check_cell(worker: Worker, planned: PlannedCell) -> None:
    """Try a cell: its config, its XLA flags, its platform, its devices.

    Args:
        worker: A worker of the cell.
        planned: The cell.

    Raises:
        UnsupportedCellError: If the release or this host refuses.
        InfrastructureError: If the devices cannot be looked at for another reason.
        WorkerDiedError: If the worker ended first.
    """
    # Each of several processes is as one alone: what is refused, is refused to it.
    alone = replace(planned.cell, platform="cpu") if planned.cell.place.processes > 1 else None
    asked = replace(planned, cell=alone) if alone else planned
    # A CPU makes as many as a case asks for, a topology has as many as its name says.
    devices = asked.cell.devices if asked.cell.place.real else 1
    case = worker_probe("checks", "check", {"devices": devices})
    finished = worker.run(Job(case=case, planned=asked))
    if finished.outcome is Outcome.OK:
        return
    if finished.killed:
        raise WorkerDiedError(f"{planned.cell.id}: the look at its devices was ended by SIGKILL")
    error = finished.error
    said = error.message if error is not None else str(finished.outcome)
    if finished.outcome is Outcome.UNSUPPORTED:
        raise UnsupportedCellError(f"jax {planned.release}: {said}")
    if finished.outcome is Outcome.RAISED and finished.stage is Stage.IMPORT:
        raise UnsupportedCellError(f"jax {planned.release}: config: {said}")
    raise InfrastructureError(f"{planned.cell.id}: cannot look at its devices: {said}")


def worker_probe(topic: str, name: str, params: Mapping[str, Any]) -> Case:
    """Return a probe of the worker itself, which is not a case of any project.

    Args:
        topic: Its module in `conformance.worker`.
        name: The function there.
        params: What it is called with.
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
