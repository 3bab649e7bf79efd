"""Workers that the process which collected forks: a crash costs no other collection."""

from __future__ import annotations

import contextlib
import os
import signal
import tempfile
import threading
from typing import IO, TYPE_CHECKING, Any, Final

import psutil

from conformance.suites.running.watch import LOST, Ended, Watch, channel, give, heard, tail

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from conformance.suites.running.session import Session
    from conformance.suites.running.told import Told
    from conformance.suites.running.watch import Event

SOON: Final = 10.0
"""Seconds that a process has to do what is done at once."""


class Root:
    """A session that is ready, and that forks workers.

    Args:
        session: The session.
    """

    def __init__(self, session: Session) -> None:
        self.session = session
        self._said = threading.Condition()
        self._pids: dict[int, int] = {}
        self._gone: dict[int, Event] = {}
        self._number = 0
        self.ended = False
        self._forking = threading.Lock()
        self._thread = threading.Thread(target=self._listen, name="root", daemon=True)
        self._thread.start()

    def _listen(self) -> None:
        try:
            for event in self.session.events():
                with self._said:
                    match event:
                        case {"event": "forked", "worker": number, "pid": pid}:
                            self._pids[number] = pid
                        case {"event": "gone", "worker": number}:
                            self._gone[number] = event
                        case _:
                            pass
                    self._said.notify_all()
        finally:
            with self._said:
                self.ended = True
                self._said.notify_all()

    def fork(self, descriptors: Sequence[int]) -> tuple[int, int]:
        """Fork a worker.

        Args:
            descriptors: Its channel, its standard output and its standard error.

        Returns:
            Its number, and its process, 0 where there is none.
        """
        with self._forking:
            self._number += 1
            number = self._number
            self.session.send({"fork": number}, descriptors)
            with self._said:
                self._said.wait_for(lambda: number in self._pids or self.ended, SOON)
                return number, self._pids.get(number, 0)

    def is_gone(self, number: int) -> bool:
        """Say whether a worker has ended."""
        return number in self._gone or self.ended

    def gone(self, number: int) -> Event | None:
        """Return how a worker ended, waiting a little; None where that is not known."""
        with self._said:
            self._said.wait_for(lambda: self.is_gone(number), SOON)
            return self._gone.get(number)

    def close(self) -> None:
        """End it, and its workers."""
        self.session.send({"over": True})
        self._thread.join(SOON)
        self.session.stop()
        self._thread.join()


class Forked:
    """A worker of a root, as `conformance.suites.running.session.Session` is one of its own.

    Args:
        root: Its root.
        stopped: Says whether it is to end now.

    Attributes:
        ended: How it ended, once its events were taken.
    """

    forked = True

    def __init__(self, root: Root, stopped: Callable[[], bool]) -> None:
        self._root, self._stopped = root, stopped
        self._line: socket.socket | None = None
        self._orders: list[Mapping[str, Any]] = []
        self.ended = Ended()

    @property
    def told(self) -> Told:
        """What its root told before any test."""
        return self._root.session.told

    def send(self, order: Mapping[str, Any]) -> None:
        """Give an order, also before it is forked; one that has ended takes none.

        Args:
            order: The order.
        """
        if self._line is None:
            self._orders.append(order)
        else:
            give(self._line, order)

    def events(self) -> Iterator[Event]:
        """Fork it, and yield what it tells; once they are no longer taken, it has ended.

        Raises:
            OSError: If the disk refuses.
        """
        launch = self._root.session.launch
        watch = Watch(launch.timeout, launch.memory)
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            line, theirs = channel()
            with line:
                with theirs:
                    files = (theirs.fileno(), out.fileno(), err.fileno())
                    number, pid = self._root.fork(files)
                if pid:
                    watch.is_of(pid)
                self._line = line
                for order in self._orders:
                    give(line, order)

                def is_over() -> bool:
                    return not pid or self._root.is_gone(number)

                try:
                    yield from heard(watch, line, is_over, (out, err), self._stopped)
                finally:
                    self._line = None
                    self.ended = self._end(number, pid, watch, out, err)

    def _end(self, number: int, pid: int, watch: Watch, out: IO[bytes], err: IO[bytes]) -> Ended:
        """End it if it has not, and return how it did."""
        if watch.cut or self._stopped() or not pid:
            _kill(pid)
        event = self._root.gone(number) if pid else None
        if event is None and pid:
            _kill(pid)
            event = self._root.gone(number)
        said = event or {"exit": None, "signal": None}
        lost = event is None and not watch.cut
        return Ended(
            status=watch.status, exit=said["exit"], signal=said["signal"],
            cut=LOST if lost else watch.cut, out=tail(out), err=tail(err),
        )  # fmt: skip


def _kill(pid: int) -> None:
    """End a worker with all that it started, as far as that is still below it."""
    if not pid:
        return
    below: list[psutil.Process] = []
    with contextlib.suppress(psutil.Error):
        below = psutil.Process(pid).children(recursive=True)
    with contextlib.suppress(OSError):
        os.kill(pid, signal.SIGKILL)
    for process in below:
        with contextlib.suppress(psutil.Error):
            process.kill()
