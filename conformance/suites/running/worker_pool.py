"""The workers of a suite in one cell, which collect it and run its tests."""

from __future__ import annotations

import itertools
import threading
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Any, Final

import psutil

from conformance.engine.job import FinishedJob
from conformance.engine.workers.probes import UnsupportedCellError
from conformance.errors import ConformanceError, InfrastructureError
from conformance.model.outcome import Outcome, Stage
from conformance.suites.running.collection import Collection
from conformance.suites.running.outcomes import explain_failure, make_error
from conformance.suites.running.session import start_session
from conformance.suites.running.worker_loop import WorkerLoop

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, MutableMapping, Sequence

    from conformance.cells.accelerators import DeviceLock
    from conformance.engine.job import Job, PlannedCell
    from conformance.engine.scheduler import JobUnits
    from conformance.suites.running.cells import ProvidedCell, SuiteCells
    from conformance.suites.running.session import PytestSession
    from conformance.suites.suite import Suite

FREE_MEMORY: Final = 0.25
"""Part of the memory of this host that waiting sessions leave free."""


class SuiteWorkerPool:
    """Collects a suite in one cell, then runs its tests in this cell.

    Implements `conformance.engine.scheduler.WorkerPool`, and the `SessionPool` of its loops. A
    session that has collected the suite waits for its tests. The first session collects all files,
    and the workers of all slots are forked from it where that is safe. Where it is not, or a test
    has killed that session, each slot has its own session.

    Args:
        suite: Suite to collect and to run.
        planned: Cell of all workers.
        cells: Provides the environment of the cell.
        devices: Lock of the accelerators of this host.
        collection: The tests of the cell, if they are known already.

    Attributes:
        planned: Cell of all workers.
        collection: The tests of the cell; empty until they are collected.
        test_names: Names of these tests, once the tests of the run are set.
        verdicts: See `SessionPool`.
        abandoned_files: See `SessionPool`.
        stopped: Whether the run was interrupted.
    """

    def __init__(
        self,
        suite: Suite,
        planned: PlannedCell,
        cells: SuiteCells,
        devices: DeviceLock,
        collection: Collection | None = None,
    ) -> None:
        self.planned, self.collection = planned, collection or Collection()
        self._suite, self._cells, self._devices = suite, cells, devices
        self._open: list[PytestSession] = []
        self._waiting: list[PytestSession] = []
        self._fork_server: PytestSession | None = None
        self._forks: bool | None = None
        # Reentrant: dropping a session closes it, which may come from a method that holds the lock.
        self._lock = threading.RLock()
        self._keys, self._busy = itertools.count(), 0
        self.test_names: frozenset[str] = frozenset()
        self.verdicts: dict[str, Callable[[Job], FinishedJob]] = {}
        self.abandoned_files: dict[object, str] = {}
        self.stopped = self._has_failed = False
        self._project, self._files, self._share = Collection(), list[str](), 1
        self._identities: MutableMapping[str, Any] = {}

    def collect(self) -> Collection:
        """Collect the suite, and return the tests; a failure is part of the collection."""
        try:
            session = self._collect_all()
        except ConformanceError as error:  # the jobs of the cell will end with the same message
            self.collection = Collection(failure=str(error), infra=True)
            return self.collection
        self._keep_waiting(session)
        if session.info.collected is None:
            _, reason = explain_failure(session.info)
            self.collection = Collection(failure=f"{reason.type}: {reason.message}")
        else:
            self.collection = session.info.collection
        return self.collection

    def add_session(self) -> None:
        """Collect once more for a slot without other work, in case no worker can be forked."""
        with suppress(ConformanceError):  # `collect` reports it
            session = self._collect_all()
            if session.info.forks:
                self.drop(session)
            else:
                self._keep_waiting(session)

    def _collect_all(self) -> PytestSession:
        """Return a session that has collected the whole suite, as far as it came."""
        with ExitStack() as resources:
            resources.enter_context(
                self._devices.acquire(self.planned.cell.place, self._raise_if_stopped)
            )
            place = resources.enter_context(self._cells.provide(self.planned))
            session = self._start_session(place, None, forks=True)
            # The environment must not be removed while the session waits.
            session.resources = resources.pop_all()
        if self.stopped:  # an interrupt may have closed it before it held anything
            session.close()
        self._raise_if_stopped()
        return session

    def _keep_waiting(self, session: PytestSession) -> None:
        """Keep a session for the run, unless it is useless or would be in the way of others."""
        memory = psutil.virtual_memory()
        scarce = memory.available < FREE_MEMORY * memory.total
        # A session on an accelerator would keep other cells from it.
        if session.info.ready is None or self.planned.cell.place.real or scarce:
            self.drop(session)
            return
        with self._lock:
            self._waiting.append(session)

    def assign(
        self,
        jobs: Sequence[Job],
        *,
        share: int,
        project: Collection,
        identities: MutableMapping[str, Any],
    ) -> None:
        """Set the tests of the run.

        Args:
            jobs: Tests to run.
            share: Slots that have work in this cell if workers cannot be forked.
            project: A collection with the folder and the configuration of all cells.
            identities: Mapping that receives the facts that sessions report, by cell id.
        """
        self.planned = jobs[0].planned
        self.test_names = frozenset(test.name for test in self.collection.tests)
        self._files, self._share = _list_files(jobs), share
        self._project, self._identities = project, identities

    def has_room(self, slots: int) -> bool:
        """Say whether another slot would have work; a forked worker costs almost nothing."""
        if self._has_failed:
            return not slots
        return slots < self._share or (bool(self._forks) and not self.planned.cell.place.real)

    def work(self, units: JobUnits) -> Iterator[FinishedJob]:
        """Run tests until all are taken; tests that cannot be run end with the reason."""
        loop: WorkerLoop | None = None
        with self._lock:
            self._busy += 1
        failure: tuple[Outcome, str] | None = None
        try:
            with (
                self._devices.acquire(self.planned.cell.place, self._raise_if_stopped),
                self._cells.provide(self.planned) as place,
            ):
                loop = WorkerLoop(self, units, place, f"loop {next(self._keys)}")
                yield from loop.run()
        except UnsupportedCellError as error:
            failure = Outcome.UNSUPPORTED, str(error)
        except ConformanceError as error:
            failure = Outcome.INFRA, str(error)
        finally:
            with self._lock:
                self._busy -= 1
                last = not self._busy
                self._has_failed |= failure is not None
            if loop is not None:
                loop.close()
                units.give_back(loop.unfinished_jobs)
        # Only the last slot fails the rest: the session of another may still run it.
        while last and failure and not self.stopped and (unit := units.take()):
            for job in unit:
                yield FinishedJob(
                    job=job, outcome=failure[0], stage=Stage.PROVISION,
                    error=make_error(str(failure[0]), failure[1]),
                )  # fmt: skip

    def _raise_if_stopped(self) -> None:
        if self.stopped:
            raise InfrastructureError("the run was interrupted")

    def get_session(self, place: ProvidedCell, wanted: Iterable[Job]) -> PytestSession:
        """Return the session that workers are forked from, otherwise another that has collected.

        Args:
            place: The environment of the cell.
            wanted: Tests of which a new session collects the files.

        Raises:
            InfrastructureError: If it does not start, or is not of the cell.
        """
        # The lock is held while the first session collects: the other slots wait to share it.
        with self._lock:
            if self._fork_server is not None:
                return self._fork_server
            if self._forks is not False:
                session = self._take_session(place, self._files, forks=True)
                self._forks = session.info.forks
                self._fork_server = session if self._forks else None
                return session
        return self._take_session(place, _list_files(wanted), forks=False)

    def _take_session(
        self, place: ProvidedCell, files: Sequence[str], *, forks: bool
    ) -> PytestSession:
        """Return a waiting session, otherwise a new session."""
        self._raise_if_stopped()
        with self._lock:
            session = self._waiting.pop(0) if self._waiting else None
        session = session or self._start_session(place, files, forks=forks)
        info = session.info
        self._identities[self.planned.cell.id] = {"versions": dict(info.versions), **info.facts}
        return session

    def _start_session(
        self, place: ProvidedCell, files: Sequence[str] | None, *, forks: bool
    ) -> PytestSession:
        """Start a session that collects some files, None for the whole suite."""
        self._raise_if_stopped()
        session = start_session(self._suite, self.planned, place, self._project, files, forks=forks)
        with self._lock:
            self._open.append(session)
        if self.stopped:  # `interrupt` may not have seen it
            self.drop(session)
        try:
            session.collect()
            self._raise_if_stopped()
        except BaseException:
            self.drop(session)
            raise
        return session

    def drop(self, session: PytestSession) -> None:
        """End a session that is no longer of use.

        If workers were forked from it, a test has ended it: no more are forked.

        Args:
            session: Session to end.
        """
        with self._lock:
            if session is self._fork_server:
                self._fork_server, self._forks = None, False
            if session in self._open:
                self._open.remove(session)
        session.close()

    def interrupt(self) -> None:
        """End what is running, and let nothing start again."""
        self.stopped = True
        self.close()

    def close(self) -> None:
        """End all sessions."""
        self._waiting.clear()
        self._fork_server = None
        while self._open:
            self._open.pop().close()


def _list_files(jobs: Iterable[Job]) -> list[str]:
    return list(dict.fromkeys(str(job.case.file.absolute()) for job in jobs))
