"""Sessions that have collected a suite and wait to run it."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING, Final

import psutil

if TYPE_CHECKING:
    from conformance.suites.running.session import PytestSession

FREE: Final = 0.25
"""Part of the memory of this host that waiting sessions leave free."""


class SessionPool:
    """Sessions by cell, as long as there is memory for them."""

    def __init__(self) -> None:
        self._sessions: dict[str, list[PytestSession]] = {}
        self._lock = Lock()

    def add(self, cell: str, session: PytestSession) -> None:
        """Keep a session until the tests of its cell are run; where memory is short, end it.

        Args:
            cell: Id of the cell.
            session: The session, which is ready to run tests.
        """
        memory = psutil.virtual_memory()
        if memory.available < FREE * memory.total:
            session.close()
            return
        with self._lock:
            self._sessions.setdefault(cell, []).append(session)

    def take(self, cell: str) -> list[PytestSession]:
        """Return the sessions of a cell, which the caller ends."""
        with self._lock:
            return self._sessions.pop(cell, [])

    def close(self) -> None:
        """End all sessions that still wait."""
        for cell in list(self._sessions):
            for session in self.take(cell):
                session.close()
