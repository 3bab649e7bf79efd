"""Collecting a suite in several cells at once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

from conformance.errors import ConformanceError, InfrastructureError
from conformance.suites.running.collection import Collection
from conformance.suites.running.outcomes import failure_of
from conformance.suites.running.session import start_session
from conformance.suites.running.session_info import collection_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from conformance.cells.accelerators import DeviceLock
    from conformance.engine.job import PlannedCell
    from conformance.suites.running.cells import SuiteCells
    from conformance.suites.running.collection_cache import Collections, Timings
    from conformance.suites.running.session import PytestSession
    from conformance.suites.running.session_pool import SessionPool
    from conformance.suites.suite import Suite


@dataclass(frozen=True, kw_only=True)
class Collector:
    """Collects a suite in cells.

    Attributes:
        suite: The suite.
        cells: Provides environments.
        collections: What was collected before.
        slots: Sessions at the same time.
        turns: Whose turn it is on the accelerators of this host.
        sessions: Keeps the sessions that have collected it, to run it.
    """

    suite: Suite
    cells: SuiteCells
    collections: Collections
    slots: int
    turns: DeviceLock
    sessions: SessionPool

    def collect(self, planned: Sequence[PlannedCell]) -> list[Collection]:
        """Return what is collected in each cell, from before where nothing has changed.

        Args:
            planned: The cells.

        Raises:
            InfrastructureError: If the disk refuses.
        """
        known = [self.collections.known(self.suite, one) for one in planned]
        new = [one for one, before in zip(planned, known, strict=True) if before is None]
        stop = Stop()
        with ThreadPoolExecutor(self.slots) as pool:
            try:
                found = {one.cell.id: pool.submit(self._collected, one, stop) for one in new}
                for one in self._more(new):
                    pool.submit(self._another, one, stop)
                return [
                    before or found[one.cell.id].result()
                    for one, before in zip(planned, known, strict=True)
                ]
            except BaseException:
                stop.set()
                raise

    def _more(self, new: Sequence[PlannedCell]) -> list[PlannedCell]:
        """Return cells in which slots that have nothing to do collect, too.

        Where workers cannot be forked, each has to.
        """
        each = self.slots // len(new) - 1 if new else 0
        return [
            one
            for one in new
            for _ in range(each)
            if not one.cell.place.real and self.collections.forked(self.suite, one) is not True
        ]

    def _session(self, planned: PlannedCell, stop: Stop) -> PytestSession:
        """Return a session that has collected, as far as it came.

        Raises:
            ConformanceError: If the cell cannot be provided, or something else answers.
        """
        with ExitStack() as held:
            held.enter_context(self.turns.acquire(planned.cell.place, stop.check))
            place = held.enter_context(self.cells.provided(planned))
            session = start_session(self.suite, planned, place, Collection())
            held.callback(stop.sessions.discard, session)
            stop.sessions.add(session)
            try:
                stop.check()
                session.collect()
                stop.check()
            except BaseException:
                session.close()
                raise
            session.held = held.pop_all()
        return session

    def _collected(self, planned: PlannedCell, stop: Stop) -> Collection:
        try:
            session = self._session(planned, stop)
        except ConformanceError as error:  # its jobs say so, too
            return Collection(failure=str(error), infra=True)
        if session.info.collected is None:
            session.close()
            _, why = failure_of(session.info)
            return Collection(failure=f"{why.type}: {why.message}")
        found = collection_of(session.info)
        self._keep(planned, session)
        self.collections.keep(self.suite, planned, found)
        return found

    def _another(self, planned: PlannedCell, stop: Stop) -> None:
        """Have one more session that runs tests, where none can be forked."""
        try:
            session = self._session(planned, stop)
        except ConformanceError:  # the other one says so
            return
        if session.info.forks:
            session.close()
        else:
            self._keep(planned, session)

    def _keep(self, planned: PlannedCell, session: PytestSession) -> None:
        """Have a session wait; one that holds an accelerator would keep others from it."""
        if session.info.ready is None or planned.cell.place.real:
            session.close()
        else:
            self.sessions.add(planned.cell.id, session)


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectedSuite:
    """A suite that is collected in some cells.

    Attributes:
        suite: The suite.
        cells: Provides environments.
        collection: The collection of some cell, for the folder that node ids start from.
        collections: The collection of each cell.
        sessions: Sessions that have collected it.
        timings: How long tests took before.
    """

    suite: Suite
    cells: SuiteCells
    collection: Collection
    collections: Sequence[tuple[PlannedCell, Collection]]
    sessions: SessionPool
    timings: Timings

    def bounds(self, planned: PlannedCell) -> dict[str, str]:
        """Return the tests that are collected in a cell, each with its `bound`.

        Args:
            planned: The cell.
        """
        return {
            test.name: test.bound
            for cell, found in self.collections
            if cell.cell.id == planned.cell.id
            for test in found.tests
        }


class Stop:
    """The order to end, and the sessions that it ends.

    Attributes:
        sessions: Sessions that collect now.
    """

    def __init__(self) -> None:
        self.sessions: set[PytestSession] = set()
        self._is_set = False

    def set(self) -> None:
        """End all sessions."""
        self._is_set = True
        for session in list(self.sessions):
            session.close()

    def check(self) -> None:
        """Raise an error once it is set.

        Raises:
            InfrastructureError: If it is.
        """
        if self._is_set:
            raise InfrastructureError("the run was interrupted")
