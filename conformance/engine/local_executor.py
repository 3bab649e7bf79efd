"""The local executor: worker processes on this machine, one per cell, shared by all slots."""

from __future__ import annotations

import re
import threading
import time
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from conformance.engine.job import FinishedJob
from conformance.engine.scheduler import CellQueue, JobUnits, schedule
from conformance.engine.workers.client import WorkerDiedError, WorkerKilledError
from conformance.engine.workers.probes import UnsupportedCellError
from conformance.engine.workers.transcript import make_error
from conformance.errors import ConformanceError, InfrastructureError
from conformance.model.outcome import Outcome, Stage

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator, Mapping

    from conformance.cells.accelerators import DeviceLock
    from conformance.engine.job import Job, PlannedCell
    from conformance.engine.workers.client import Worker

    OpenWorker = Callable[[PlannedCell], Worker]

PAUSES: Final = (0.5, 1.0, 2.0, 4.0)
"""Seconds to wait before each retry of a job that the host had no room for."""
EXHAUSTED: Final = "the host is out of memory: its kernel ended processes during this job"
ONCE: Final = "was killed from outside (SIGKILL) and run again; this is the second time"
TWICE: Final = "was killed (SIGKILL) two times, by none of its limits: is the host out of memory?"
DEVICE_ERROR: Final = re.compile(
    r"CUDA_ERROR_|cudaError|HIP_ERROR|hipError|illegal memory access"
    r"|XLA:(GPU|TPU).*(fault|fail)|device.*(halted|lost|fallen off)",
    re.IGNORECASE,
)
"""Errors after which an accelerator may refuse a process until that process ends."""


class CellWorker:
    """The worker of one cell, started for the first job and replaced when it dies.

    Several threads may run jobs at the same time; on an accelerator one after another.

    Args:
        planned: Cell of the worker.
        open_worker: Provides the cell's environment and starts its worker.
        device_lock: Lock of the accelerators of this host.
    """

    def __init__(
        self, planned: PlannedCell, open_worker: OpenWorker, device_lock: DeviceLock
    ) -> None:
        self.planned = planned
        self._open = open_worker
        self._device_lock = device_lock
        self._lock = threading.Lock()
        self._worker: Worker | None = None
        # A cell that cannot start is tried once, not for each of its jobs.
        self._failure: ConformanceError | None = None
        self._others: list[CellWorker] = []

    def run(self, job: Job) -> FinishedJob:
        """Run one job to its end.

        Args:
            job: A job of this cell.

        Returns:
            The finished job: `infra` if the cell cannot be provided, `unsupported` if this host
            or release cannot serve it, `crashed` if two workers die with the job.
        """
        try:
            with self._device_lock.acquire(self.planned.cell.place, self._check_failure):
                finished = self._run(job)
                # After a device error CUDA refuses all further work of the process.
                if self.planned.cell.place.real and has_device_error(finished):
                    self.close()
        except UnsupportedCellError as error:
            return make_unstarted(job, Outcome.UNSUPPORTED, str(error))
        except ConformanceError as error:
            return make_unstarted(job, Outcome.INFRA, str(error))
        return finished

    @property
    def failed(self) -> bool:
        """Whether the cell could not start, so that all of its jobs end in the same way."""
        return self._failure is not None

    @property
    def resident_bytes(self) -> int:
        """Resident memory of the worker without its jobs, 0 if it is not running."""
        worker = self._worker
        return 0 if worker is None else worker.resident_bytes

    def start(self) -> str:
        """Start the worker, unless it runs; return why it cannot be started, empty if it can."""
        try:
            self._ensure_worker()
        except ConformanceError as error:
            return str(error)
        return ""

    def has_room(self, _: int) -> bool:
        """Return whether one more slot is useful: a worker runs several jobs at once."""
        return True

    def work(self, units: JobUnits) -> Iterator[FinishedJob]:
        """Run units until none is left; see `WorkerPool.work`."""
        while unit := units.take():
            for job in unit:
                yield self.run(job)

    def _check_failure(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _run(self, job: Job) -> FinishedJob:
        """Run a job among others, and again in a separate worker if it or its worker is killed.

        The killer is unknown: a neighbour, or the kernel of a host that is out of memory. In a
        worker without other jobs, the job itself is responsible for its end.
        """
        try:
            worker = self._ensure_worker()
            finished = worker.run(job)
        except WorkerDiedError:
            return self._run_alone(job)
        if finished.killed:
            again = self._run_alone(job)
            return replace(again, notes=(*again.notes, TWICE if again.killed else ONCE))
        for pause in PAUSES:
            if not finished.refused:
                break
            # Other jobs end meanwhile and free processes or memory.
            time.sleep(pause)
            self._check_failure()
            finished = self._run_alone(job)
        return finished

    def _run_alone(self, job: Job) -> FinishedJob:
        """Run a job in a worker without other jobs."""
        before = count_oom_kills()
        try:
            with self._start_separate_worker() as worker:
                finished = worker.run(job)
        except WorkerDiedError as error:
            text = f"2 workers ended with this job, the second one ran no other job: {error}"
            cause = make_error("worker", text, job)
            finished = FinishedJob(
                job=job, outcome=Outcome.CRASHED, stage=Stage.IMPORT, error=cause
            )
            return self._blame_host(finished, before)
        return self._blame_host(finished, before) if finished.killed else finished

    def _blame_host(self, finished: FinishedJob, before: int) -> FinishedJob:
        """Return a killed job as `infra` if the kernel has killed processes to free memory."""
        self._check_failure()  # an interrupted run kills its workers as well
        if count_oom_kills() <= before:
            return finished
        error = make_error("infra", EXHAUSTED, finished.job)
        return replace(finished, outcome=Outcome.INFRA, error=error)

    @contextmanager
    def _start_separate_worker(self) -> Iterator[Worker]:
        """Start a worker for one job; on an accelerator it replaces the shared worker."""
        if self.planned.cell.place.real:  # an accelerator serves one process at a time
            self.close()
            yield self._ensure_worker()
            return
        other = CellWorker(self.planned, self._open, self._device_lock)
        with self._lock:
            self._check_failure()
            self._others.append(other)
        try:
            yield other._ensure_worker()
        finally:
            with self._lock:
                self._others.remove(other)
            other.close()

    def _ensure_worker(self) -> Worker:
        """Return the worker; start it first if there is none or it has died."""
        with self._lock:
            self._check_failure()
            if self._worker is not None and not self._worker.alive:
                self._worker.close()
                self._worker = None
            if self._worker is None:
                try:
                    self._worker = self._open_twice()
                except ConformanceError as error:
                    self._failure = error
                    raise
            return self._worker

    def _open_twice(self) -> Worker:
        """Start a worker, a second time if it is killed, for which the cell may not be to blame."""
        try:
            return self._open(self.planned)
        except (WorkerDiedError, WorkerKilledError):
            time.sleep(PAUSES[0])  # a host without room may have some soon
        try:
            return self._open(self.planned)
        except WorkerDiedError as error:
            raise InfrastructureError(str(error)) from None

    def interrupt(self) -> None:
        """End the worker with its jobs, and let no worker start again.

        The worker is not killed, so that it removes the processes and files of its jobs.
        """
        with self._lock:
            self._failure = InfrastructureError("the run was interrupted")
            others = list(self._others)
        # Outside the lock, which `_start_separate_worker` takes when one of them ends.
        for other in others:
            other.interrupt()
        self.close()

    def close(self) -> None:
        """End the worker; the next job starts another worker."""
        with self._lock:
            if self._worker is not None:
                self._worker.close()
                self._worker = None


class LocalExecutor:
    """Runs jobs in workers on this machine.

    Args:
        open_worker: Provides a cell's environment and starts its worker.
        slots: Number of jobs that run at the same time.
        device_lock: Lock of the accelerators of this host.
    """

    def __init__(self, open_worker: OpenWorker, *, slots: int, device_lock: DeviceLock) -> None:
        self._open = open_worker
        self._slots = slots
        self._device_lock = device_lock
        self._identities: dict[str, Mapping[str, Any]] = {}

    @property
    def identities(self) -> Mapping[str, Mapping[str, Any]]:
        """Identities that the workers reported, by cell id."""
        return self._identities

    def run(self, jobs: Iterable[Job]) -> Generator[FinishedJob]:
        """Run jobs and yield each as it ends; see `Executor.run`."""
        cells: dict[str, list[Job]] = {}
        for job in jobs:
            cells.setdefault(job.planned.cell.id, []).append(job)
        yield from schedule(
            [
                CellQueue(
                    CellWorker(own[0].planned, self._open_worker, self._device_lock),
                    JobUnits([job] for job in _order_by_requirements(own)),
                )
                for own in cells.values()
            ],
            self._slots,
        )

    def _open_worker(self, planned: PlannedCell) -> Worker:
        worker = self._open(planned)
        self._identities[planned.cell.id] = worker.identity
        return worker


def _order_by_requirements(jobs: Iterable[Job]) -> list[Job]:
    """Return jobs that need packages other than jax last: a server with them forks more slowly."""
    return sorted(jobs, key=lambda job: bool(job.case.requires))


def count_oom_kills() -> int:
    """Return the number of processes that the kernel of this host has killed to free memory."""
    try:
        lines = Path("/proc/vmstat").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("oom_kill ")), 0)


def has_device_error(finished: FinishedJob) -> bool:
    """Return whether a job ended with an error of its device."""
    blobs = (finished.blobs.get(name, b"") for name in ("traceback", "stderr"))
    texts = [blob.decode("utf-8", "replace") for blob in blobs]
    texts += [] if finished.error is None else [finished.error.message]
    return finished.outcome is not Outcome.OK and any(map(DEVICE_ERROR.search, texts))


def make_unstarted(job: Job, outcome: Outcome, reason: str) -> FinishedJob:
    """Return a job that never started.

    Args:
        job: The job.
        outcome: Its outcome, `infra` or `unsupported`.
        reason: Why it did not start.
    """
    error = make_error(str(outcome), reason, job)
    return FinishedJob(job=job, outcome=outcome, stage=Stage.PROVISION, error=error)
