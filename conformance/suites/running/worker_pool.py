"""The workers of a suite in one cell, which collect it and run its tests."""

from __future__ import annotations

import itertools
import threading
from collections import deque
from contextlib import ExitStack, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import psutil

from conformance.engine.job import FinishedJob
from conformance.engine.worker_probes import UnsupportedCellError
from conformance.errors import ConformanceError, InfrastructureError
from conformance.model.outcome import Outcome, Stage
from conformance.suites.inside.session_server import LOST
from conformance.suites.running.collection import Collection
from conformance.suites.running.outcomes import (
    explain_failure,
    finish_failed_session,
    finish_killed,
    finish_test,
    finish_uncollected,
    finish_vanished,
    make_error,
)
from conformance.suites.running.session import start_session

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, MutableMapping, Sequence

    from conformance.cells.accelerators import DeviceLock
    from conformance.engine.job import Job, PlannedCell
    from conformance.engine.scheduler import JobUnits
    from conformance.suites.running.cells import ProvidedCell, SuiteCells
    from conformance.suites.running.collection import SessionInfo
    from conformance.suites.running.session import PytestSession
    from conformance.suites.suite import Suite

IN_A_ROW: Final = 8
"""Workers that may end at their first test, all alike, before the rest of its file is given up."""
FREE_MEMORY: Final = 0.25
"""Part of the memory of this host that waiting sessions leave free."""
_LOOKAHEAD: Final = 2
"""Tests that a loop has taken while it runs the first of them."""


class SuiteWorkerPool:
    """Collects a suite in one cell, then runs its tests in this cell.

    Implements `conformance.engine.scheduler.WorkerPool`. A session that has collected the suite
    waits for its tests. The first session collects all files, and the workers of all slots are
    forked from it where that is safe. Where it is not, or a test has killed that session, each
    slot has its own session.

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
        verdicts: How tests ended that were not requested, by name: a suite may have its own loop.
            The verdict under the empty name holds for all tests.
        abandoned_files: Reasons why the tests of a file are no longer tried, by file.
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


class WorkerLoop:
    """Runs tests of a cell in one slot, until all tests are taken.

    Args:
        pool: Provides sessions; several loops share it.
        units: The tests of the cell, which other loops take from as well.
        place: The environment of the cell.
        key: Key of its worker, where workers are forked.
    """

    def __init__(
        self, pool: SuiteWorkerPool, units: JobUnits, place: ProvidedCell, key: str
    ) -> None:
        self._pool, self._units, self._place, self._key = pool, units, place, key
        self._jobs: deque[Job] = deque()
        self._own: PytestSession | None = None
        self._announced = ""  # pytest has kept fixtures for it: it must come next
        self._tests_run = 0
        self._losses = 0
        self._first_failures: list[str] = []

    @property
    def unfinished_jobs(self) -> tuple[Job, ...]:
        """The tests that this loop took and that did not end."""
        return tuple(self._jobs)

    def close(self) -> None:
        """End its own session, if it has one."""
        if self._own is not None:
            self._pool.drop(self._own)
        self._own = None

    def run(self) -> Iterator[FinishedJob]:
        """Run tests, and yield each as it ends, unless the pool is stopped meanwhile.

        Raises:
            InfrastructureError: If a session does not even start, or is not of the cell.
        """
        while not self._pool.stopped and self._fill():
            finished = self._try_next()
            if finished is not None and not self._pool.stopped:
                self._jobs.popleft()
                self._losses = 0
                yield finished

    def _fill(self) -> bool:
        """Take units until the test after the next one is known as well."""
        # pytest must be given the following test, to keep the fixtures that both tests use.
        while len(self._jobs) < _LOOKAHEAD and (unit := self._units.take()):
            self._jobs.extend(unit)
        return bool(self._jobs)

    def _try_next(self) -> FinishedJob | None:
        """Return how the next test ends, None if it is to be tried again."""
        job = self._jobs[0]
        if job.case.name != self._announced and (finished := self._find_verdict(job)):
            return finished
        session = self._find_session(job)
        if session.info.ready is None:
            return self._take_unrequested(session, job)
        if job.case.name not in session.info.names:
            return self._finish_missing(job, session.info)
        return self._run(session, job)

    def _find_verdict(self, job: Job) -> FinishedJob | None:
        """Return how a test ends that need not be run, None for any other."""
        verdicts = self._pool.verdicts
        if verdict := verdicts.get(job.case.name) or verdicts.get(""):
            return verdict(job)
        if reason := self._pool.abandoned_files.get(job.case.file):
            error = make_error("not run", reason)
            return FinishedJob(job=job, outcome=Outcome.NOT_RUN, stage=Stage.EXECUTE, error=error)
        return None

    def _find_session(self, job: Job) -> PytestSession:
        """Return a session that has collected the file of a test."""
        if self._own is not None:
            if self._own.covers(job):
                return self._own
            self.close()
        session = self._pool.get_session(self._place, (*self._jobs, *self._units.jobs))
        if not session.info.forks:
            self._own, self._tests_run = session, 0
        return session

    def _take_unrequested(self, session: PytestSession, job: Job) -> FinishedJob | None:
        """Take the results of a session that ended before it was ready to run what is requested.

        A suite with its own loop runs the tests that it chooses. If a session ran nothing,
        all tests end like it.
        """
        info, verdicts = session.info, self._pool.verdicts
        self.close()
        before = len(verdicts)
        # Results for all loops: another session would run the same tests again.
        verdicts.update(
            {name: partial(finish_test, report=report) for name, report in info.reports.items()}
        )
        if info.running and info.end is not None:
            verdicts[info.running] = partial(finish_killed, end=info.end)
        if len(verdicts) == before:
            verdicts[""] = partial(finish_failed_session, info=info)
        elif job.case.name not in verdicts and not info.running:
            return finish_failed_session(job, info)
        return None

    def _finish_missing(self, job: Job, info: SessionInfo) -> FinishedJob:
        """Return how a test ends that is not in this cell, or cannot be collected."""
        name = job.case.name
        problem = next((problem for problem in info.problems if problem.covers(name)), None)
        if problem is None and "::" not in name:  # a module that could not be collected elsewhere
            return FinishedJob(job=job, outcome=Outcome.OK, stage=Stage.IMPORT)
        # e.g. a parametrisation by a random number, or by the time.
        if problem is None and name in self._pool.test_names:
            return finish_vanished(job)
        return finish_uncollected(job, problem)

    def _run(self, session: PytestSession, job: Job) -> FinishedJob | None:
        """Run a test; an end of its worker is the end of this test only."""
        self._announced = self._find_following(session)
        report, end = session.run(job.case.name, self._announced, self._key)
        self._tests_run += 1
        is_first, has_ended = self._tests_run == 1, bool(end.ended or end.signal or end.exit != 0)
        if has_ended:
            self._tests_run, self._announced = 0, ""
            if self._own is not None:
                self.close()
            elif end.ended == LOST:
                self._pool.drop(session)
        if report is not None:
            self._first_failures = []
            return finish_test(job, report)
        is_lost = end.ended == LOST and (session.info.forks or not self._losses)
        if is_lost or (end.ended == "memory" and not is_first):
            # Other tests seem to be the cause: it is tried again in a new worker.
            self._losses += is_lost
            return None
        finished = finish_killed(job, end)
        # A file is abandoned only if each worker is a session: forking another worker is cheap.
        is_cheap = session.info.forks and end.ended != "timeout"
        self._count_failure(finished, is_first=is_first, is_cheap=is_cheap)
        return finished

    def _count_failure(self, finished: FinishedJob, *, is_first: bool, is_cheap: bool) -> None:
        """Give up the file of a test once enough workers have ended at their first test alike."""
        signature = "" if finished.error is None else finished.error.signature
        alike = is_first and {signature}.issuperset(self._first_failures)
        self._first_failures = [*self._first_failures, signature] if alike else [signature]
        if len(self._first_failures) >= IN_A_ROW and not is_cheap:
            self._pool.abandoned_files[finished.job.case.file] = (
                f"{IN_A_ROW} sessions in a row ended at their first test, the last at "
                f"{finished.job.case.name}: the rest of its file was not tried"
            )
            self._first_failures = []

    def _find_following(self, session: PytestSession) -> str:
        """Return the test after the next one, empty if the same process does not run it."""
        following = self._jobs[1] if len(self._jobs) > 1 else None
        if following is None or following.case.file in self._pool.abandoned_files:
            return ""
        name = following.case.name
        return name if session.covers(following) and name in session.info.names else ""


def _list_files(jobs: Iterable[Job]) -> list[str]:
    return list(dict.fromkeys(str(job.case.file.absolute()) for job in jobs))
