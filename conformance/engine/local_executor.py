"""The local executor: worker processes on this machine, one per cell, shared by the slots."""

from __future__ import annotations

import re
import threading
import time
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from conformance.engine.client import WorkerDiedError, WorkerKilledError
from conformance.engine.job import Finished
from conformance.engine.scheduler import CellQueue, JobUnits, schedule
from conformance.engine.transcript import make_error
from conformance.engine.worker_probes import UnsupportedCellError
from conformance.errors import ConformanceError, InfrastructureError
from conformance.model.outcome import Outcome, Stage

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator, Mapping

    from conformance.cells.accelerators import DeviceLock
    from conformance.engine.client import Worker
    from conformance.engine.job import Job, PlannedCell

    OpenWorker = Callable[[PlannedCell], Worker]

PAUSES: Final = (0.5, 1.0, 2.0, 4.0)
"""Seconds to wait before a job is tried again for which the host had no room."""
EXHAUSTED: Final = "the host is out of memory: the kernel ended processes for it meanwhile"
ONCE: Final = "was killed from outside (SIGKILL) and run again; this is the second time"
TWICE: Final = "was killed (SIGKILL) two times, by none of its limits: is the host out of memory?"
DEVICE_ERROR: Final = re.compile(
    r"CUDA_ERROR_|cudaError|HIP_ERROR|hipError|illegal memory access"
    r"|XLA:(GPU|TPU).*(fault|fail)|device.*(halted|lost|fallen off)",
    re.IGNORECASE,
)
"""Errors after which an accelerator may refuse whoever held it until they let go of it."""


class CellWorker:
    """The worker of one cell, started when the first job comes and replaced when it dies.

    Several threads may run jobs in it at once; on an accelerator one waits for the other.

    Args:
        planned: The cell.
        open_worker: Provides the cell's environment and starts its worker.
        turns: Whose turn it is on the accelerators of this host.
    """

    def __init__(self, planned: PlannedCell, open_worker: OpenWorker, turns: DeviceLock) -> None:
        self.planned = planned
        self._open = open_worker
        self._turns = turns
        self._lock = threading.Lock()
        self._worker: Worker | None = None
        self._failure: ConformanceError | None = None
        self._others: list[CellWorker] = []

    def run(self, job: Job) -> Finished:
        """Run one job to its end, whatever that is.

        Args:
            job: A job of this cell.

        Returns:
            How it ended; `infra` when the cell cannot start, `unsupported` when it cannot be
            served, `crashed` when the job takes one worker after another with it.
        """
        try:
            with self._turns.acquire(self.planned.cell.place, self._go_on):
                finished = self._run(job)
                if self.planned.cell.place.real and has_device_error(finished):
                    self._retire()
        except UnsupportedCellError as error:
            return _not_run(job, Outcome.UNSUPPORTED, str(error))
        except ConformanceError as error:
            return _not_run(job, Outcome.INFRA, str(error))
        return finished

    def has_room(self, _: int) -> bool:
        """Say that one more slot is of use: several jobs run in the worker at once."""
        return True

    def work(self, units: JobUnits) -> Iterator[Finished]:
        """Run jobs until none is left; see `WorkerPool.work`."""
        while unit := units.take():
            for job in unit:
                yield self.run(job)

    def _go_on(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _run(self, job: Job) -> Finished:
        """Run a job beside others, and once more alone if something took it or its worker away.

        Who does so is not known: a neighbour that kills the worker, or the kernel of a host that is
        out of memory. Alone in a worker of its own, a job has nobody to blame but itself.
        """
        try:
            worker = self._living()
            finished = worker.run(job)
        except WorkerDiedError:
            return self._alone(job)
        if finished.killed:
            again = self._alone(job)
            return replace(again, notes=(*again.notes, TWICE if again.killed else ONCE))
        for pause in PAUSES:
            if not finished.refused:
                break
            time.sleep(pause)
            self._go_on()
            finished = self._alone(job)
        return finished

    def _alone(self, job: Job) -> Finished:
        """Run a job in a worker that has no other."""
        before = count_oom_kills()
        try:
            with self._own_worker() as worker:
                finished = worker.run(job)
        except WorkerDiedError as error:
            text = f"2 workers ended with this job, the second had no other: {error}"
            killer = make_error("worker", text, job)
            finished = Finished(job=job, outcome=Outcome.CRASHED, stage=Stage.IMPORT, error=killer)
            return self._excused(finished, before)
        return self._excused(finished, before) if finished.killed else finished

    def _excused(self, finished: Finished, before: int) -> Finished:
        """Return a job that was killed as `infra` where the kernel killed for want of memory."""
        self._go_on()  # an interrupted run kills workers, too
        if count_oom_kills() <= before:
            return finished
        error = make_error("infra", EXHAUSTED, finished.job)
        return replace(finished, outcome=Outcome.INFRA, error=error)

    @contextmanager
    def _own_worker(self) -> Iterator[Worker]:
        """Start a worker that nobody else uses, and end it; on an accelerator in place of ours."""
        if self.planned.cell.place.real:  # one worker at a time
            self._retire()
            yield self._living()
            return
        other = CellWorker(self.planned, self._open, self._turns)
        with self._lock:
            self._go_on()
            self._others.append(other)
        try:
            yield other._living()
        finally:
            with self._lock:
                self._others.remove(other)
            other.close()

    def _living(self) -> Worker:
        """Return the worker, started first, or in the place of a dead one."""
        with self._lock:
            self._go_on()
            if self._worker is not None and not self._worker.alive:
                self._worker.close()
                self._worker = None
            if self._worker is None:
                try:
                    self._worker = self._opened()
                except ConformanceError as error:
                    self._failure = error
                    raise
            return self._worker

    def _opened(self) -> Worker:
        """Start a worker; that one is killed meanwhile says nothing of the cell."""
        try:
            return self._open(self.planned)
        except (WorkerDiedError, WorkerKilledError):
            time.sleep(PAUSES[0])  # a host that has no room may have some soon
        try:
            return self._open(self.planned)
        except WorkerDiedError as error:
            raise InfrastructureError(str(error)) from None

    def interrupt(self) -> None:
        """End the worker, with its jobs, and let none start again.

        The worker is not killed: it takes with it what its jobs started and wrote.
        """
        with self._lock:
            self._failure = InfrastructureError("the run was interrupted")
            others = list(self._others)
        for other in others:
            other.interrupt()
        self.close()

    def close(self) -> None:
        """End the worker."""
        self._retire()

    def _retire(self) -> None:
        with self._lock:
            if self._worker is not None:
                self._worker.close()
                self._worker = None


class LocalExecutor:
    """Runs jobs in workers on this machine.

    Args:
        open_worker: Provides a cell's environment and starts its worker.
        slots: Jobs that run at the same time.
        turns: Whose turn it is on the accelerators of this host.
    """

    def __init__(self, open_worker: OpenWorker, *, slots: int, turns: DeviceLock) -> None:
        self._open = open_worker
        self._slots = slots
        self._turns = turns
        self._identities: dict[str, Mapping[str, Any]] = {}

    @property
    def identities(self) -> Mapping[str, Mapping[str, Any]]:
        """What the workers said they are, by cell id."""
        return self._identities

    def run(self, jobs: Iterable[Job]) -> Generator[Finished]:
        """Run jobs and yield each as it ends; see `Executor.run`."""
        cells: dict[str, list[Job]] = {}
        for job in jobs:
            cells.setdefault(job.planned.cell.id, []).append(job)
        yield from schedule(
            [
                CellQueue(
                    CellWorker(own[0].planned, self._worker, self._turns),
                    JobUnits([job] for job in _leanest_first(own)),
                )
                for own in cells.values()
            ],
            self._slots,
        )

    def _worker(self, planned: PlannedCell) -> Worker:
        worker = self._open(planned)
        self._identities[planned.cell.id] = worker.identity
        return worker


def _leanest_first(jobs: Iterable[Job]) -> list[Job]:
    """Return jobs that need packages beside jax last: a server that has them forks at more cost."""
    return sorted(jobs, key=lambda job: bool(job.case.requires))


def count_oom_kills() -> int:
    """Return how many processes the kernel of this host has ended for want of memory."""
    try:
        lines = Path("/proc/vmstat").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("oom_kill ")), 0)


def has_device_error(finished: Finished) -> bool:
    """Say whether a job ended with an error of its device, not of its own."""
    said = finished.error.message if finished.error is not None else ""
    texts = [said, *(_text(finished.blobs.get(name, b"")) for name in ("traceback", "stderr"))]
    return finished.outcome is not Outcome.OK and any(map(DEVICE_ERROR.search, texts))


def _text(blob: bytes) -> str:
    return blob.decode("utf-8", "replace")


def _not_run(job: Job, outcome: Outcome, message: str) -> Finished:
    error = make_error(str(outcome), message, job)
    return Finished(job=job, outcome=outcome, stage=Stage.PROVISION, error=error)
