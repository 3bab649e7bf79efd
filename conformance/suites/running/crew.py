"""The workers of one cell: forked from the process that collected, else processes of their own."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Protocol

from conformance.suites.running.roots import Forked, Root

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from conformance.engine.job import Job, PlannedCell
    from conformance.suites.running.session import Session
    from conformance.suites.running.units import Units


class Begin(Protocol):
    """Makes a session."""

    def __call__(self, jobs: Sequence[Job], /, *, forks: bool) -> Session:
        """Return one that collects the files of some tests, and may fork workers or not."""
        ...


class Crew:
    """What runs the tests of a cell.

    Args:
        planned: The cell.
        units: The tests.
        ready: Sessions that have collected the whole suite already.
        stopped: Says whether all is to end now.
    """

    def __init__(
        self,
        planned: PlannedCell,
        units: Units,
        ready: list[Session],
        stopped: Callable[[], bool],
    ) -> None:
        self.planned, self.units = planned, units
        self._ready, self._stopped = ready, stopped
        for session in ready:
            session.stopped = stopped
        self._root: Root | None = None
        self._lock = threading.Lock()
        self._busy = 0
        self.forks: bool | None = None

    @property
    def may_be_helped(self) -> bool:
        """Whether one more worker costs next to nothing, and has something to do."""
        return bool(self.forks) and len(self.units) > 1 and not self.planned.cell.place.real

    def worker(self, begin: Begin, mine: Sequence[Job]) -> tuple[Session | Forked, Sequence[Job]]:
        """Return a worker, and the tests that it must know if the suite has them.

        Args:
            begin: Makes a session that collects the files of some tests, and forks or does not.
            mine: Tests that it is to run, beside those that nobody has taken.
        """
        with self._lock:
            if self._root is not None and self._root.ended:
                self._distrust()
            wanted = (*mine, *self.units.left)
            if self._root is not None:
                if self._root.session.told.names.issuperset(job.case.name for job in mine):
                    return Forked(self._root, self._stopped), ()
                return begin(wanted, forks=False), wanted
            session = self._ready.pop(0) if self._ready else None
            if self.forks is False:
                return session or begin(wanted, forks=False), wanted
            session = session or begin(wanted, forks=True)
            ready = session.collect()
            self.forks = ready and bool(session.told.forks)
            if not self.forks:
                return session, wanted
            self._root = Root(session)
            return Forked(self._root, self._stopped), wanted

    def _distrust(self) -> None:
        """Fork no more: a test ended the process that others were forked from, too."""
        left, self._ready[:] = list(self._ready), []
        for session in left:
            session.close()
        if self._root is not None:
            self._root.close()
        self._root, self.forks = None, False

    def enter(self) -> None:
        """Take that somebody uses it."""
        with self._lock:
            self._busy += 1

    def leave(self) -> bool:
        """Take that somebody does no longer; the last one ends what is left of it.

        Returns:
            Whether it is the last one.
        """
        with self._lock:
            self._busy -= 1
            if self._busy:
                return False
            root, self._root = self._root, None
            left, self._ready[:] = list(self._ready), []
        for session in left:
            session.close()
        if root is not None:
            root.close()
        return True
