"""Warm workers: one per cell, open between batches, ended by least use under a memory budget."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from conformance.engine.local_executor import CellWorker

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Hashable, Iterable, Iterator, Mapping
    from contextlib import AbstractContextManager
    from typing import Any

    from conformance.cells.accelerators import DeviceLock
    from conformance.engine.job import FinishedJob, Job, PlannedCell
    from conformance.engine.local_executor import OpenWorker


@dataclass(slots=True)
class _Entry:
    """The worker of a cell, with the number of batches that use it.

    Attributes:
        worker: The worker.
        users: Batches that use it.
        is_over: Whether it ends with the last of them.
        used: When a batch used it last, as of `time.monotonic`.
    """

    worker: CellWorker
    users: int = 0
    is_over: bool = False
    used: float = field(default_factory=time.monotonic)


class WarmWorkers:
    """Workers of cells that stay open between batches.

    Args:
        budget: Bytes of resident memory above which idle workers are closed.
        patience: Seconds after which an idle worker is closed.
    """

    def __init__(self, budget: int, patience: float) -> None:
        self._budget = budget
        self._patience = patience
        self._lock = threading.Lock()
        self._entries: dict[Hashable, _Entry] = {}

    @contextmanager
    def lease(self, key: Hashable, make: Callable[[], CellWorker]) -> Iterator[CellWorker]:
        """Use the worker of a cell, which other batches may use as well.

        Args:
            key: Key of everything that the worker depends on.
            make: Makes the worker if there is none.
        """
        with self._lock:
            entry = self._entries.get(key)
            if entry is None:
                entry = self._entries[key] = _Entry(make())
            entry.users += 1
        try:
            yield entry.worker
        finally:
            with self._lock:
                entry.users -= 1
                entry.used = time.monotonic()
                # A failure may be gone the next time, e.g. a full disk: a new worker tries again.
                if entry.worker.failed and self._entries.get(key) is entry:
                    del self._entries[key]
                    entry.is_over = True
                is_closing = entry.is_over and not entry.users
            if is_closing:
                entry.worker.close()
            self.shrink()

    def retire(self, key: Hashable) -> None:
        """Let the next lease make a new worker; the present one ends with its last batch.

        Args:
            key: Key of the worker, see `lease`.
        """
        with self._lock:
            entry = self._entries.pop(key, None)
            if entry is None:
                return
            entry.is_over = True
            is_closing = not entry.users
        if is_closing:
            entry.worker.close()

    def shrink(self) -> None:
        """Close idle workers that exceed the budget, or that nothing used for long."""
        now = time.monotonic()
        with self._lock:
            idle = sorted(
                (key for key, entry in self._entries.items() if not entry.users),
                key=lambda key: self._entries[key].used,
            )
            total = sum(entry.worker.resident_bytes for entry in self._entries.values())
            closing = []
            for key in idle:
                entry = self._entries[key]
                if total <= self._budget and now - entry.used < self._patience:
                    continue
                total -= entry.worker.resident_bytes
                closing.append(self._entries.pop(key).worker)
        # Outside the lock, because ending a worker takes up to seconds.
        for worker in closing:
            worker.close()

    @property
    def cells(self) -> tuple[str, ...]:
        """Ids of the cells with a worker."""
        with self._lock:
            return tuple(entry.worker.planned.cell.id for entry in self._entries.values())

    def close(self) -> None:
        """End all workers with their jobs."""
        with self._lock:
            entries, self._entries = list(self._entries.values()), {}
        for entry in entries:
            entry.worker.interrupt()


class WarmExecutor:
    """An executor whose workers stay open between calls, for many small batches of jobs.

    Args:
        open_worker: Provides a cell's environment and starts its worker.
        slots: Number of jobs that run at the same time.
        device_lock: Lock of the accelerators of this host.
        workers: The workers.
    """

    def __init__(
        self,
        open_worker: OpenWorker,
        *,
        slots: int,
        device_lock: DeviceLock,
        workers: WarmWorkers,
    ) -> None:
        self._open = open_worker
        self._device_lock = device_lock
        self._workers = workers
        self._threads = ThreadPoolExecutor(slots, "slot")

    @property
    def identities(self) -> Mapping[str, Mapping[str, Any]]:
        """Nothing: no record is made of its jobs."""
        return {}

    def run(self, jobs: Iterable[Job]) -> Generator[FinishedJob]:
        """Run jobs and yield each as it ends; see `Executor.run`."""
        futures = [self._threads.submit(self._run, job) for job in jobs]
        try:
            for future in as_completed(futures):
                yield future.result()
        finally:
            for future in futures:
                future.cancel()

    def start(self, planned: PlannedCell) -> str:
        """Start the worker of a cell, unless it runs.

        Returns:
            Why it cannot be started, empty if it can.
        """
        with self._lease(planned) as worker:
            return worker.start()

    def renew(self, planned: PlannedCell) -> None:
        """Run the next jobs of a cell in a new worker.

        Args:
            planned: The cell.
        """
        self._workers.retire(planned.cell.id)

    def _run(self, job: Job) -> FinishedJob:
        with self._lease(job.planned) as worker:
            return worker.run(job)

    def _lease(self, planned: PlannedCell) -> AbstractContextManager[CellWorker]:
        return self._workers.lease(
            planned.cell.id, lambda: CellWorker(planned, self._open, self._device_lock)
        )

    def close(self) -> None:
        """End the workers with their jobs."""
        self._workers.close()
        self._threads.shutdown(cancel_futures=True)
