"""Listening to a process that runs tests: what it tells, how long it may, and how it ended."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import socket
import time
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Any, Final

import psutil

from conformance.cells.secret_masking import Masker
from conformance.worker.frames import clean
from conformance.worker.processes import tree_memory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    Event = Mapping[str, Any]

QUIET: Final = 600.0
"""Seconds without a test after which a session is held to hang: collecting, or tidying up."""
LARGEST: Final = 2**26
"""Bytes that a session may print past pytest."""
TAIL: Final = 16 * 1024
LOST: Final = "root"
"""Why a worker was ended, where the process that it was forked from is gone."""
_LOOK: Final = 0.1
_MIB: Final = 2**20
_BUFFER: Final = 2**18
"""Bytes that wait in a channel: an order, or events, that nobody has read yet."""
_WORDS: Final = frozenset({"event", "node", "outcome", "phase", "test", "tests"})
"""Keys of events whose values are words of the protocol, or names of tests."""


@dataclass(slots=True, kw_only=True)
class Ended:
    """How a process that ran tests ended.

    Attributes:
        status: What pytest returned, None where it never did.
        exit: Exit status of the process, None where it had none.
        signal: The signal that ended it, None where none did.
        cut: Why it was ended from outside: `timeout`, `memory`, `output`, `garbled`, `interrupt`,
            `root`.
        out: The last of what it printed.
        err: The same of standard error.
    """

    status: int | None = None
    exit: int | None = None
    signal: int | None = None
    cut: str = ""
    out: str = ""
    err: str = ""


@dataclass(slots=True)
class Watch:
    """What a process does now, and until when it may.

    Attributes:
        timeout: Seconds that one test may take.
        memory: MiB that the process may hold.
        status: What pytest returned, None until it did.
        cut: Why it is to be ended, empty while it is not.
        process: The process, None until it is known.
        deadline: When it is to have told of something.
    """

    timeout: float
    memory: int
    status: int | None = None
    cut: str = ""
    process: psutil.Process | None = None
    deadline: float = field(default_factory=lambda: time.monotonic() + QUIET)
    _looked: float = 0.0

    def rest(self) -> None:
        """Wait anew: nothing was asked of it until now."""
        self.deadline = time.monotonic() + QUIET

    def is_of(self, pid: int) -> None:
        """Take which process it is."""
        with contextlib.suppress(psutil.Error):
            self.process = psutil.Process(pid)

    def take(self, event: Event) -> None:
        """Take an event."""
        match event:
            case {"event": "hello", "pid": pid}:
                self.is_of(pid)
            case {"event": "begin"}:
                self.deadline = time.monotonic() + self.timeout
            case {"event": "end"}:
                self.deadline = time.monotonic() + QUIET
            case {"event": "over", "status": status}:
                self.status = status
            case _:
                pass

    def look(self, files: Sequence[IO[bytes]], *, stopped: bool) -> None:
        """Find out whether the process is to be ended."""
        if stopped:
            self.cut = "interrupt"
            return
        now = time.monotonic()
        if now - self._looked < _LOOK:
            return
        self._looked = now
        if now > self.deadline:
            self.cut = "timeout"
        elif any(os.fstat(file.fileno()).st_size > LARGEST for file in files):
            self.cut = "output"
        elif self._resident() > self.memory * _MIB:
            self.cut = "memory"

    def _resident(self) -> int:
        """Return the bytes that the process holds with all that it started."""
        if self.process is None:
            return 0
        if held := tree_memory(self.process.pid, self.memory * _MIB):
            return held
        try:  # a system without /proc
            return int(self.process.memory_info().rss)
        except psutil.Error:
            return 0


def heard(
    watch: Watch,
    line: socket.socket,
    is_over: Callable[[], bool],
    files: Sequence[IO[bytes]],
    stopped: Callable[[], bool],
) -> Iterator[Event]:
    """Yield events of a process until there is nothing more to wait for.

    Args:
        watch: Its watch, which says in the end why it is to be ended, if it is.
        line: Where it tells.
        is_over: Says whether it has ended by itself.
        files: What it prints to.
        stopped: Says whether it is to end now.
    """
    rest, masker = b"", Masker(os.environ)
    with selectors.DefaultSelector() as selector:
        selector.register(line, selectors.EVENT_READ)
        while watch.status is None and not watch.cut:
            ready = selector.select(_LOOK)
            ended = not ready and is_over()
            data = _read(line) if ready or ended else None
            *lines, rest = (rest + (data or b"")).split(b"\n")
            for text in lines:
                if (event := _event(text, masker)) is None:
                    watch.cut = "garbled"
                    return
                watch.take(event)
                yield event
            if data == b"" or (ended and data is None):
                # Nobody can tell any more; what it has to do yet, it does soon or never.
                break
            watch.look(files, stopped=stopped())


def _event(line: bytes, masker: Masker) -> Event | None:
    """Return the event of a line with secrets masked, None if a test wrote it."""
    try:
        event = masker.tree(clean(json.loads(line)), _WORDS)
    except (ValueError, RecursionError):
        return None
    return event if isinstance(event, dict) and "event" in event else None


def _read(line: socket.socket) -> bytes | None:
    """Return some bytes, empty at the end of the stream, None when there are none now."""
    try:
        return line.recv(1 << 18, socket.MSG_DONTWAIT)
    except BlockingIOError:
        return None
    except ConnectionResetError:  # it ended before it had read all orders
        return b""


def tail(file: IO[bytes]) -> str:
    """Return the last of what was printed to a file."""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - TAIL))
    return Masker(os.environ).text(file.read().decode("utf-8", "replace"))


def channel() -> tuple[socket.socket, socket.socket]:
    """Return the two ends of a channel, ours first."""
    both = socket.socketpair()
    for one in both:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _BUFFER)
    return both


def give(line: socket.socket, order: Mapping[str, Any], descriptors: Sequence[int] = ()) -> None:
    """Give an order; a process that has ended takes none.

    Args:
        line: Its channel.
        order: The order.
        descriptors: What comes with it.
    """
    text = json.dumps(order).encode() + b"\n"
    with contextlib.suppress(OSError):
        if descriptors:
            socket.send_fds(line, [text], list(descriptors))
        else:
            line.sendall(text)
