"""Turns of two jobs that are measured together: one of them works, the other one waits.

The speed of a busy host changes within tenths of a second. Pieces of work that alternate every few
milliseconds see the same speed; jobs that run one after the other do not.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import socket
import struct
import sys
import time
from math import inf
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

PATIENCE = 10.0
"""Seconds to wait for the other job, which may fail before it gets here."""
_MESSAGE = struct.Struct("<d")
_NOTHING = -inf


class Turns:
    """The turns of this job with another one; without another one nothing ever waits.

    Both jobs must call `hand_over` and `agree` in the same order.

    Args:
        wanted: `path` of the socket at which the jobs meet, and `first`, whether this job works
            first; None for a job that is measured alone.
    """

    def __init__(self, wanted: Mapping[str, Any] | None) -> None:
        self._other = _meet(wanted["path"], wanted["first"]) if wanted else None
        self._is_first = bool(wanted and wanted["first"])
        self._received = _NOTHING
        if not self._is_first:
            self._wait()
        self._processors = _list_processors()
        # That of the first job, which is at least 0.
        self._shared = self.agree(_find_processor() if self._is_first else -1)

    @property
    def together(self) -> bool:
        """Whether the other job is there."""
        return self._other is not None

    def hand_over(self, value: float = _NOTHING) -> None:
        """Let the other job work, and wait until it hands over in its turn.

        Args:
            value: A value for the other job, see `agree`.
        """
        if self._other is None:
            return
        try:
            self._other.sendall(_MESSAGE.pack(value))
        except OSError:
            self.close()
        self._wait()

    def agree(self, value: float) -> float:
        """Return the larger of a value and that of the other job: what both base a decision on.

        Args:
            value: What this job measured.
        """
        # Messages carry the values: one has reached the second job already, its answer reaches the
        # first job at the end of `hand_over`.
        earlier = self._received
        self.hand_over(value)
        return max(value, self._received if self._is_first else earlier)

    @contextlib.contextmanager
    def on_shared_processor(self) -> Iterator[None]:
        """Keep this thread on the processor that the other job's uses, too.

        Processors of a host differ in speed by what else they and their siblings do.
        """
        if self._other is None or self._shared not in self._processors:
            yield
            return
        _restrict({int(self._shared)})
        try:
            yield
        finally:
            _restrict(self._processors)

    def close(self) -> None:
        """Leave the other job to itself."""
        if self._other is not None:
            self._other.close()
            self._other = None
            self._received = _NOTHING

    def _wait(self) -> None:
        if self._other is None:
            return
        message = b""
        with contextlib.suppress(OSError):
            message = self._other.recv(_MESSAGE.size, socket.MSG_WAITALL)
        if len(message) == _MESSAGE.size:
            (self._received,) = _MESSAGE.unpack(message)
        else:
            self.close()


def _list_processors() -> set[int]:
    """Return the processors that this thread may use, none on systems that cannot restrict it."""
    return os.sched_getaffinity(0) if sys.platform == "linux" else set()


def _restrict(processors: set[int]) -> None:
    # The host may have taken a processor away.
    with contextlib.suppress(OSError):
        os.sched_setaffinity(0, processors)


def _find_processor() -> int:
    """Return the processor that this thread runs on, -1 on systems that do not tell."""
    return int(ctypes.CDLL(None).sched_getcpu()) if sys.platform == "linux" else -1


def _meet(path: str, is_first: bool) -> socket.socket | None:
    """Return the connection to the other job, None if it does not come."""
    end = time.monotonic() + PATIENCE
    if is_first:
        with socket.socket(socket.AF_UNIX) as listener, contextlib.suppress(OSError):
            listener.bind(path)
            listener.listen(1)
            listener.settimeout(PATIENCE)
            other, _ = listener.accept()
            other.setblocking(True)
            return other
        return None
    while time.monotonic() < end:
        other = socket.socket(socket.AF_UNIX)
        try:
            other.connect(path)
        except OSError:
            other.close()
            time.sleep(0.002)
        else:
            return other
    return None
