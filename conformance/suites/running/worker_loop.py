"""The loop of one slot over the tests of a suite in one cell."""

from __future__ import annotations

from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

from conformance.engine.job import FinishedJob
from conformance.model.outcome import Outcome, Stage
from conformance.suites.inside.session_server import LOST
from conformance.suites.running.outcomes import (
    finish_failed_session,
    finish_killed,
    finish_test,
    finish_uncollected,
    finish_vanished,
    make_error,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from conformance.engine.job import Job
    from conformance.engine.scheduler import JobUnits
    from conformance.suites.running.cells import ProvidedCell
    from conformance.suites.running.collection import SessionInfo
    from conformance.suites.running.session import PytestSession

IN_A_ROW: Final = 8
"""Workers that may end at their first test, all alike, before the rest of its file is given up."""
_LOOKAHEAD: Final = 2
"""Tests that a loop has taken while it runs the first of them."""


class SessionPool(Protocol):
    """Provides sessions to the loops of one cell, and has the state that these share.

    Attributes:
        test_names: Names of the tests of the cell.
        verdicts: How tests ended that were not requested, by name: a suite may have its own loop.
            The verdict under the empty name holds for all tests.
        abandoned_files: Reasons why the tests of a file are no longer tried, by file.
        stopped: Whether the run was interrupted.
    """

    test_names: frozenset[str]
    verdicts: dict[str, Callable[[Job], FinishedJob]]
    abandoned_files: dict[object, str]
    stopped: bool

    def get_session(self, place: ProvidedCell, wanted: Iterable[Job]) -> PytestSession:
        """Return a session that has collected the files of some tests.

        Args:
            place: The environment of the cell.
            wanted: The tests.

        Raises:
            InfrastructureError: If it does not start, or is not of the cell.
        """
        ...

    def drop(self, session: PytestSession) -> None:
        """End a session that is no longer of use.

        Args:
            session: Session to end.
        """
        ...


class WorkerLoop:
    """Runs tests of a cell in one slot, until all tests are taken.

    Args:
        pool: Provides sessions; several loops share it.
        units: The tests of the cell, which other loops take from as well.
        place: The environment of the cell.
        key: Key of its worker, where workers are forked.
    """

    def __init__(self, pool: SessionPool, units: JobUnits, place: ProvidedCell, key: str) -> None:
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
