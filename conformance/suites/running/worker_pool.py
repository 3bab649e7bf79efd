"""The workers of one cell of a suite: forked from a session, or sessions of their own."""

from __future__ import annotations

import itertools
import threading
from typing import TYPE_CHECKING, Any

from conformance.engine.job import Finished
from conformance.engine.worker_probes import UnsupportedCellError
from conformance.errors import ConformanceError, InfrastructureError
from conformance.model.outcome import Outcome, Stage
from conformance.suites.running.outcomes import describe_end
from conformance.suites.running.session import start_session
from conformance.suites.running.worker_loop import WorkerLoop

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, MutableMapping, Sequence

    from conformance.cells.accelerators import DeviceLock
    from conformance.engine.job import Job, PlannedCell
    from conformance.engine.scheduler import JobUnits
    from conformance.suites.running.cells import ProvidedCell
    from conformance.suites.running.collecting import CollectedSuite
    from conformance.suites.running.session import PytestSession


class SuiteWorkerPool:
    """Runs the tests of a suite in one cell; see `conformance.engine.scheduler.WorkerPool`.

    The first session collects all files, and the workers of all slots are forked from it where
    that is safe. Where it is not, or a test has killed it, each slot has a session of its own.

    Args:
        planned: The cell.
        collected: The suite.
        jobs: The tests.
        share: Slots that have work here, if workers cannot be forked.
        turns: Whose turn it is on the accelerators of this host.
        identities: Takes what the sessions report of a cell, by its id.

    Attributes:
        planned: The cell.
        known: Names of the tests that were collected in the cell before.
        verdicts: How tests ended that nobody requested, by name: a suite may have its own loop.
        given_up: Why the tests of a file are no longer tried, by file.
    """

    def __init__(
        self,
        planned: PlannedCell,
        collected: CollectedSuite,
        jobs: Iterable[Job],
        *,
        share: int,
        turns: DeviceLock,
        identities: MutableMapping[str, Any],
    ) -> None:
        self.planned, self.known = planned, collected.bounds(planned).keys()
        self._collected, self._files = collected, _files(jobs)
        self._share, self._turns, self._identities = share, turns, identities
        self._ready = collected.sessions.take(planned.cell.id)
        self._open = list(self._ready)
        self._root: PytestSession | None = None
        self._forks: bool | None = None
        self._lock = threading.RLock()
        self._numbers, self._busy = itertools.count(), 0
        self.verdicts: dict[str, Callable[[Job], Finished]] = {}
        self.given_up: dict[object, str] = {}
        self.stopped = self._has_failed = False

    def has_room(self, slots: int) -> bool:
        """Say whether one more slot is of use: to fork a worker costs next to nothing."""
        if self._has_failed:
            return not slots
        return slots < self._share or (bool(self._forks) and not self.planned.cell.place.real)

    def work(self, units: JobUnits) -> Iterator[Finished]:
        """Run tests until none is left; tests that cannot be run end with the reason."""
        loop: WorkerLoop | None = None
        with self._lock:
            self._busy += 1
        failure: tuple[Outcome, str] | None = None
        try:
            with (
                self._turns.acquire(self.planned.cell.place, self._go_on),
                self._collected.cells.provided(self.planned) as place,
            ):
                loop = WorkerLoop(self, units, place, f"loop {next(self._numbers)}")
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
                units.give_back(loop.left)
        while last and failure and not self.stopped and (unit := units.take()):
            for job in unit:
                yield Finished(
                    job=job, outcome=failure[0], stage=Stage.PROVISION,
                    error=describe_end(str(failure[0]), failure[1]),
                )  # fmt: skip

    def _go_on(self) -> None:
        if self.stopped:
            raise InfrastructureError("the run was interrupted")

    def session(self, place: ProvidedCell, wanted: Iterable[Job]) -> PytestSession:
        """Return a session that has collected: the one that forks, else a new one.

        Args:
            place: The environment of the cell.
            wanted: The tests that a session of its own is to know.

        Raises:
            InfrastructureError: If it does not start, or is not of the cell.
        """
        with self._lock:
            if self._root is not None:
                return self._root
            if self._forks is not False:
                session = self._next(place, self._files, forks=True)
                self._forks = session.info.forks
                self._root = session if self._forks else None
                return session
        return self._next(place, _files(wanted))

    def _next(
        self, place: ProvidedCell, files: Sequence[str], *, forks: bool = False
    ) -> PytestSession:
        """Return a session that waits, or a new one."""
        self._go_on()
        with self._lock:
            session = self._ready.pop(0) if self._ready else None
        if session is None:
            one = self._collected
            session = start_session(
                one.suite, self.planned, place, one.collection, files, forks=forks
            )
            self._open.append(session)
        if self.stopped:
            self.drop(session)
        session.collect()
        self._go_on()
        facts = {"versions": dict(session.info.versions), **session.info.facts}
        self._identities[self.planned.cell.id] = facts
        return session

    def drop(self, session: PytestSession) -> None:
        """End a session that is of no use any more.

        Where workers were forked from it, a test has ended it: no more are forked.

        Args:
            session: The session.
        """
        with self._lock:
            if session is self._root:
                self._root, self._forks = None, False
            if session in self._open:
                self._open.remove(session)
        session.close()

    def interrupt(self) -> None:
        """End what is running, and let nothing start again."""
        self.stopped = True
        self.close()

    def close(self) -> None:
        """End all sessions."""
        self._ready.clear()
        self._root = None
        while self._open:
            self._open.pop().close()


def _files(jobs: Iterable[Job]) -> list[str]:
    return list(dict.fromkeys(str(job.case.file.absolute()) for job in jobs))
