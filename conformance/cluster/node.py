"""A node of a cluster: runs batches in warm workers of cells and makes records of their jobs."""

from __future__ import annotations

import contextlib
import hashlib
import os
import platform
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec
import psutil

from conformance.cells.accelerators import DeviceLock, find_missing_accelerator
from conformance.cells.lock import UnsupportedHostError, check_host, get_host
from conformance.cells.platforms import REAL, get_platform
from conformance.cluster.content import (
    FOLDER,
    NodeRefusalError,
    Recorder,
    has_content,
    remove_old_entries,
    shares_files,
)
from conformance.cluster.messages import (
    BatchEnd,
    BatchUpdate,
    JobReport,
    NodeFacts,
    describe_harness,
    encode,
)
from conformance.engine.cache.results import hash_host
from conformance.engine.local_executor import CellWorker
from conformance.engine.workers.preparation import Provider
from conformance.engine.workers.warm import WarmWorkers
from conformance.errors import InfrastructureError
from conformance.files import write_atomically
from conformance.model.outcome import Outcome, Stage

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Mapping
    from concurrent.futures import Future

    from conformance.cluster.messages import BatchRequest, ContentPlace
    from conformance.engine.job import FinishedJob, Job, PlannedCell
    from conformance.engine.workers.client import Worker

    Emit = Callable[[bytes], None]

FILES: Final = "files"
FLUSH: Final = 1.0
"""Seconds between two messages with finished jobs of a batch."""
IDLE: Final = 600.0
"""Seconds after which a worker without jobs is closed."""
SHARE: Final = 0.5
"""Part of the node's memory for warm workers; jobs need the rest."""


class Node:
    """A node: its cache folder, and its warm workers.

    Args:
        cache: Cache folder of the node.
        slots: Batches at the same time.
        memory: Bytes of memory that the node may use; 0 for all of the machine.
        resources: Names of its resources, which the user gave.
    """

    def __init__(
        self, cache: Path, *, slots: int = 1, memory: int = 0, resources: Iterable[str] = ()
    ) -> None:
        self._cache = cache
        remove_old_entries(cache / FOLDER / FILES)
        self._slots = slots
        self._resources = tuple(resources)
        self._device_lock = DeviceLock(cache)
        total = memory or psutil.virtual_memory().total
        self._workers = WarmWorkers(int(total * SHARE), IDLE)
        self._lock = threading.Lock()
        self._abandoned: set[str] = set()
        self._identities: dict[str, Mapping[str, object]] = {}

    def describe(self, content: ContentPlace) -> NodeFacts:
        """Return the facts of the node.

        Args:
            content: Place of artifacts, which the node may see.
        """
        return NodeFacts(
            harness=describe_harness(),
            host=get_host(),
            machine=_read_machine_id(),
            processor=hash_host(),
            slots=self._slots,
            accelerators=tuple(
                name for name in sorted(REAL) if not find_missing_accelerator(get_platform(name))
            ),
            resources=self._resources,
            shares_files=shares_files(content),
        )

    def run(self, request: BatchRequest, emit: Emit) -> BatchUpdate | None:
        """Run a batch.

        Args:
            request: The batch.
            emit: Sends a `BatchUpdate` to the run.

        Returns:
            The last update, if it carries artifacts; None if `emit` got it.
        """
        planned = request.cell.make_cell()
        started: list[str] = []
        recorder = Recorder(request.content, self._cache)
        # Events pass through the scheduler, which keeps many of them: none carries artifacts.
        outbox = _Outbox(request.key, emit if recorder.shared else None)
        try:
            _check_cell(planned, request)
            run = self._run_cases if request.suite is None else self._run_tests
            with contextlib.closing(run(request, planned, started)) as found:
                for finished in found:
                    _check_provided(finished)
                    outbox.add(recorder.report(finished))
                    if self._is_abandoned(request.key):
                        break
        except NodeRefusalError as error:
            end = BatchEnd(
                refusal=str(error), lacks_accelerator=error.lacks_accelerator, broken=error.broken
            )
        else:
            end = BatchEnd()
        finally:
            with self._lock:
                self._abandoned.discard(request.key)
        end = msgspec.structs.replace(
            end, cells=self._workers.cells, started=len(started),
            identity=dict(self._identities.get(planned.cell.id, {})),
        )  # fmt: skip
        last = BatchUpdate(key=request.key, jobs=tuple(outbox.reports), end=end)
        if outbox.emit is None:
            return last
        outbox.emit(encode(last))
        return None

    def abandon(self, key: str) -> None:
        """Start no further job of a batch.

        Args:
            key: Key of the batch.
        """
        with self._lock:
            self._abandoned.add(key)

    def close(self) -> None:
        """End all workers with their jobs."""
        self._workers.close()

    def _run_cases(
        self, request: BatchRequest, planned: PlannedCell, started: list[str]
    ) -> Generator[FinishedJob]:
        """Run cases, and add the cell to `started` when its worker is started."""
        provider = Provider(
            {planned.cell.id: request.cell.make_lock()}, self._cache, spawn=request.spawn,
            require_platform=request.require_platform,
        )  # fmt: skip

        def open_worker(cell: PlannedCell) -> Worker:
            worker = provider.open(cell)
            started.append(cell.cell.id)
            self._identities[cell.cell.id] = worker.identity
            return worker

        files = self._place_files(request)
        # The worker depends on the lock, the interpreter, the variables and the overlay.
        key = (planned.cell.id, planned.cell_hash or repr(planned), request.spawn,
               request.require_platform)  # fmt: skip
        with self._workers.lease(
            key, lambda: CellWorker(planned, open_worker, self._device_lock)
        ) as worker:
            jobs = (
                spec.make_job(worker.planned, replace(spec.case, file=files[str(spec.case.file)]))
                for spec in request.decode_jobs()
            )
            yield from _run_ahead(worker.run, jobs)

    def _run_tests(
        self, request: BatchRequest, planned: PlannedCell, started: list[str]
    ) -> Generator[FinishedJob]:
        """Run tests of a suite, and add the cell to `started`: each batch has its own session."""
        suite = request.suite
        assert suite is not None  # noqa: S101 - for mypy
        if problem := suite.find_problem():
            raise NodeRefusalError(f"{problem}; run on a cluster that shares the file system")
        jobs = [spec.make_job(planned) for spec in request.decode_jobs()]
        locks = {planned.cell.id: request.cell.make_lock()}
        started.append(planned.cell.id)
        yield from suite.run(jobs, locks, self._cache, self._device_lock, self._identities)

    def _is_abandoned(self, key: str) -> bool:
        with self._lock:
            return key in self._abandoned

    def _place_files(self, request: BatchRequest) -> Mapping[str, Path]:
        """Return the path of each file of a batch on this node.

        Files that the node sees in the same place are used there: an error then names the path
        that the user knows. Others are written to the cache.

        Raises:
            NodeRefusalError: If the jobs need files that are not sent, or the disk refuses.
        """
        if all(has_content(Path(name), data) for name, data in request.files.items()):
            return {name: Path(name) for name in request.files}
        if request.in_place:
            raise NodeRefusalError(
                "does not see the functions and scripts of the run; run on a cluster that shares "
                "the file system"
            )
        digest = hashlib.sha256()
        for name, data in sorted(request.files.items()):
            digest.update(f"{name} {len(data)}\n".encode() + data)
        folder = self._cache / FOLDER / FILES / digest.hexdigest()[:32]
        # Below their own names: a case knows its family by the folder, and imports its neighbours.
        # No name leads out of the folder, whatever it is.
        root = Path(os.path.commonpath([str(Path(name).parent.parent) for name in request.files]))
        places = {
            name: folder.joinpath(*(part for part in Path(name).relative_to(root).parts
                                    if part not in {"..", "/"}))
            for name in request.files
        }  # fmt: skip
        try:
            for name, place in places.items():
                if not has_content(place, request.files[name]):
                    write_atomically(place, request.files[name])
            # The next node on this machine removes what is old.
            os.utime(folder)
        except InfrastructureError as error:
            raise NodeRefusalError(str(error), broken=True) from None
        return places


@dataclass(slots=True)
class _Outbox:
    """Reports that wait for the next message."""

    key: str
    emit: Emit | None
    reports: list[JobReport] = field(default_factory=list)
    sent: float = field(default_factory=time.monotonic)

    def add(self, report: JobReport) -> None:
        self.reports.append(report)
        # A message for each job would cost the scheduler more than the job may take.
        if self.emit is not None and time.monotonic() - self.sent >= FLUSH:
            self.emit(encode(BatchUpdate(key=self.key, jobs=tuple(self.reports))))
            self.reports.clear()
            self.sent = time.monotonic()


def _run_ahead(run: Callable[[Job], FinishedJob], jobs: Iterable[Job]) -> Generator[FinishedJob]:
    """Run jobs one after another, each while the caller records the one before."""
    with ThreadPoolExecutor(1, "ahead") as thread:
        before: Future[FinishedJob] | None = None
        for job in jobs:
            running = thread.submit(run, job)
            if before is not None:
                yield before.result()
            before = running
        if before is not None:
            yield before.result()


def _check_provided(finished: FinishedJob) -> None:
    """Check that this node could provide the cell of a job; another node may.

    Raises:
        NodeRefusalError: If it could not: then it runs no job of the cell.
    """
    if finished.outcome is Outcome.INFRA and finished.stage is Stage.PROVISION:
        raise NodeRefusalError("" if finished.error is None else finished.error.message)


def _check_cell(planned: PlannedCell, request: BatchRequest) -> None:
    """Check that this node can serve a cell, as far as that is known before it is provided.

    Raises:
        NodeRefusalError: If it cannot.
    """
    if missing := find_missing_accelerator(planned.cell.place):
        raise NodeRefusalError(missing, lacks_accelerator=True)
    if planned.overlay and not Path(planned.overlay).is_dir():
        raise NodeRefusalError(
            f"does not see {planned.overlay}, the folder of additional packages; put "
            "CONFORMANCE_CACHE on a file system that the nodes share"
        )
    if planned.cell.interpreter is not None:
        if not planned.cell.interpreter.exists():
            raise NodeRefusalError(f"has no {planned.cell.interpreter}")
        return
    try:
        check_host(request.cell.make_lock())
    except UnsupportedHostError as error:
        raise NodeRefusalError(str(error)) from None


def _read_machine_id() -> str:
    """Return the id of the running kernel: containers on one machine have the same."""
    with suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    return platform.node()
