"""Collecting a suite in several cells at once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from threading import Event
from typing import TYPE_CHECKING

from conformance.errors import ConformanceError, InfrastructureError
from conformance.suites.running.cells import check_identity
from conformance.suites.running.collection import Collection
from conformance.suites.running.endings import failure_of
from conformance.suites.running.launching import launch
from conformance.suites.running.session import Session
from conformance.suites.running.told import collection_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from conformance.cells.accelerators import DeviceLock
    from conformance.engine.job import PlannedCell
    from conformance.suites.running.cells import SuiteCells
    from conformance.suites.running.kept import Collections
    from conformance.suites.running.waiting import Waiting
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
        waiting: Keeps the sessions that have collected it, to run it.
    """

    suite: Suite
    cells: SuiteCells
    collections: Collections
    slots: int
    turns: DeviceLock
    waiting: Waiting

    def collect(self, planned: Sequence[PlannedCell]) -> list[Collection]:
        """Return what is collected in each cell, from before where nothing has changed.

        Args:
            planned: The cells.

        Raises:
            InfrastructureError: If the disk refuses.
        """
        stopped = Event()
        known = [self.collections.known(self.suite, one) for one in planned]
        new = [one for one, before in zip(planned, known, strict=True) if before is None]
        with ThreadPoolExecutor(self.slots) as pool:
            try:
                found = {one.cell.id: pool.submit(self._collected, one, stopped) for one in new}
                for one in self._more(new):
                    pool.submit(self._another, one, stopped)
                return [
                    before or found[one.cell.id].result()
                    for one, before in zip(planned, known, strict=True)
                ]
            except BaseException:
                stopped.set()
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

    def _session(self, planned: PlannedCell, stopped: Event) -> Session:
        """Return a session that has collected, as far as it came.

        Raises:
            ConformanceError: If the cell cannot be provided, or something else answers.
        """

        def go_on() -> None:
            if stopped.is_set():
                raise InfrastructureError("the run was interrupted")

        with ExitStack() as held:
            held.enter_context(self.turns.of(planned.cell.place, go_on))
            place = held.enter_context(self.cells.provided(planned))
            how = launch(self.suite, place, Collection(), self.suite.paths)
            session = Session(how, stopped.is_set)
            session.collect()
            if session.told.versions is not None:
                check_identity(planned, session.told.versions)
            session.keeps = held.pop_all()
        return session

    def _collected(self, planned: PlannedCell, stopped: Event) -> Collection:
        try:
            session = self._session(planned, stopped)
        except ConformanceError as error:  # its jobs say so, too
            return Collection(failure=str(error), infra=True)
        if session.told.collected is None:
            session.close()
            _, why = failure_of(session.ended)
            return Collection(failure=f"{why.type}: {why.message}")
        found = collection_of(session.told)
        self._keep(planned, session)
        self.collections.keep(self.suite, planned, found)
        return found

    def _another(self, planned: PlannedCell, stopped: Event) -> None:
        """Have one more session that runs tests, where none can be forked."""
        try:
            session = self._session(planned, stopped)
        except ConformanceError:  # the other one says so
            return
        if session.told.forks:
            session.close()
        else:
            self._keep(planned, session)

    def _keep(self, planned: PlannedCell, session: Session) -> None:
        """Have a session wait; one that holds an accelerator would keep others from it."""
        if session.told.forks is None or planned.cell.place.real:
            session.close()
        else:
            self.waiting.add(planned.cell.id, session)
