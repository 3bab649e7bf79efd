"""The loop of one slot over the tests of a cell, in which a test may end in any way."""

from __future__ import annotations

from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol

from conformance.engine.job import Finished
from conformance.model.outcome import Outcome, Stage
from conformance.suites.inside.session_server import LOST
from conformance.suites.running.outcomes import (
    describe_end,
    failed_session,
    finish,
    gone_again,
    killed,
    not_collected,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Iterator

    from conformance.engine.job import Job
    from conformance.engine.messages import JobEnd
    from conformance.engine.scheduler import JobUnits
    from conformance.suites.running.cells import ProvidedCell
    from conformance.suites.running.session_info import SessionInfo, TestReport

IN_A_ROW: Final = 8
"""Workers that may end at their first test, all alike, before the rest of its file is given up."""


class CollectedSession(Protocol):
    """A session that runs tests: see `conformance.suites.running.session.PytestSession`."""

    @property
    def info(self) -> SessionInfo:
        """What it reported before any test was requested."""
        ...

    def covers(self, job: Job) -> bool:
        """Say whether it has collected the file of a test."""
        ...

    def run(self, test: str, following: str, share: str) -> tuple[TestReport | None, JobEnd]:
        """Run a test."""
        ...


class RunnerSource(Protocol):
    """The pool of a cell: see `conformance.suites.running.worker_pool.SuiteWorkerPool`."""

    verdicts: dict[str, Callable[[Job], Finished]]
    given_up: dict[object, str]
    stopped: bool

    @property
    def known(self) -> Container[str]:
        """Names of the tests that were collected in the cell before."""
        ...

    def session(self, place: ProvidedCell, wanted: Iterable[Job]) -> CollectedSession:
        """Return a session that has collected."""
        ...

    def drop(self, session: Any) -> None:
        """End a session."""
        ...


class WorkerLoop:
    """Runs tests of one cell until none is left to take.

    Args:
        pool: Provides sessions; several loops have it in common.
        units: The tests of the cell, which other loops take from, too.
        place: The environment of the cell.
        key: Key of its worker, where workers are forked.
    """

    def __init__(self, pool: RunnerSource, units: JobUnits, place: ProvidedCell, key: str) -> None:
        self._pool, self._units, self._place, self._key = pool, units, place, key
        self._jobs: deque[Job] = deque()
        self._own: CollectedSession | None = None
        self._announced = ""  # pytest has kept fixtures for it: it must come next
        self._begun = 0
        self._losses = 0
        self._row: list[str] = []

    @property
    def left(self) -> tuple[Job, ...]:
        """Tests that were taken here and did not end."""
        return tuple(self._jobs)

    def close(self) -> None:
        """End its own session, if it has one."""
        if self._own is not None:
            self._pool.drop(self._own)
        self._own = None

    def run(self) -> Iterator[Finished]:
        """Run tests, and yield each as it ends; those that are left when it is stopped are not.

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
        """Take units until the test after the next one is known, too."""
        while len(self._jobs) < 2 and (unit := self._units.take()):  # noqa: PLR2004
            self._jobs.extend(unit)
        return bool(self._jobs)

    def _try_next(self) -> Finished | None:
        """Return how the next test ends, None if it is to be tried again."""
        job = self._jobs[0]
        if job.case.name != self._announced and (finished := self._known(job)):
            return finished
        session = self._session(job)
        if session.info.ready is None:
            return self._take_unrequested(session, job)
        if job.case.name not in session.info.names:
            return self._missing(job, session.info)
        return self._run(session, job)

    def _known(self, job: Job) -> Finished | None:
        """Return how a test ends that need not be run, None for any other."""
        verdicts = self._pool.verdicts
        if verdict := verdicts.get(job.case.name) or verdicts.get(""):
            return verdict(job)
        if why := self._pool.given_up.get(job.case.file):
            error = describe_end("not run", why)
            return Finished(job=job, outcome=Outcome.NOT_RUN, stage=Stage.EXECUTE, error=error)
        return None

    def _session(self, job: Job) -> CollectedSession:
        """Return a session that has collected the file of a test."""
        if self._own is not None:
            if self._own.covers(job):
                return self._own
            self.close()
        session = self._pool.session(self._place, (*self._jobs, *self._units.jobs))
        if not session.info.forks:
            self._own, self._begun = session, 0
        return session

    def _take_unrequested(self, session: CollectedSession, job: Job) -> Finished | None:
        """Take the results of a session that ended before it was ready to run what is requested.

        A suite that has a loop of its own runs what it wants to. A session that ran nothing is how
        all tests end.
        """
        info, verdicts = session.info, self._pool.verdicts
        self.close()
        before = len(verdicts)
        verdicts.update({name: partial(finish, report=one) for name, one in info.reports.items()})
        if info.running and info.end is not None:
            verdicts[info.running] = partial(killed, end=info.end)
        if len(verdicts) == before:
            verdicts[""] = partial(failed_session, info=info)
        elif job.case.name not in verdicts and not info.running:
            return failed_session(job, info)
        return None

    def _missing(self, job: Job, info: SessionInfo) -> Finished:
        """Return how a test ends that the suite does not have here, or that cannot be collected."""
        name = job.case.name
        problem = next((one for one in info.problems if one.covers(name)), None)
        if problem is None and "::" not in name:  # a module that could not be collected elsewhere
            return Finished(job=job, outcome=Outcome.OK, stage=Stage.IMPORT)
        if problem is None and name in self._pool.known:
            return gone_again(job)
        return not_collected(job, problem)

    def _run(self, session: CollectedSession, job: Job) -> Finished | None:
        """Run a test; what ends its worker ends one test."""
        self._announced = self._following(session)
        report, end = session.run(job.case.name, self._announced, self._key)
        self._begun += 1
        is_first, has_ended = self._begun == 1, bool(end.ended or end.signal or end.exit != 0)
        if has_ended:
            self._begun, self._announced = 0, ""
            if self._own is not None:
                self.close()
            elif end.ended == LOST:
                self._pool.drop(session)
        if report is not None:
            self._row = []
            return finish(job, report)
        is_lost = end.ended == LOST and (session.info.forks or not self._losses)
        if is_lost or (end.ended == "memory" and not is_first):
            self._losses += is_lost
            return None  # by others, it seems: it is tried again in a worker of its own
        finished = killed(job, end)
        how = "" if finished.error is None else finished.error.signature
        self._row = [*self._row, how] if is_first and {how}.issuperset(self._row) else [how]
        is_cheap = session.info.forks and end.ended != "timeout"
        if len(self._row) >= IN_A_ROW and not is_cheap:
            self._pool.given_up[job.case.file] = (
                f"{IN_A_ROW} sessions in a row ended at their first test, the last at "
                f"{job.case.name}: the rest of its file was not tried"
            )
            self._row = []
        return finished

    def _following(self, session: CollectedSession) -> str:
        """Return the test after the next one, empty if the same process does not run it."""
        following = self._jobs[1] if len(self._jobs) > 1 else None
        if following is None or following.case.file in self._pool.given_up:
            return ""
        name = following.case.name
        return name if session.covers(following) and name in session.info.names else ""
