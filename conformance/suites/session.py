"""A session of pytest: one process in a cell, its events, and whatever way it ends."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

import psutil

from conformance.engine import guard
from conformance.suites.suite import PLUGIN

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    Event = Mapping[str, Any]

QUIET: Final = 600.0
"""Seconds without a test after which a session is held to hang: collecting, or tidying up."""
LARGEST: Final = 2**26
"""Bytes that a session may print past pytest."""
TAIL: Final = 16 * 1024
_LOOK: Final = 0.1
_MIB: Final = 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """What a session runs, and where.

    Attributes:
        python: Interpreter of the cell.
        environment: Environment variables.
        arguments: Arguments of pytest.
        tests: Names of the tests to run, None to collect only.
        timeout: Seconds that one test may take.
        memory: MiB that the process may hold.
    """

    python: Path
    environment: Mapping[str, str]
    arguments: Sequence[str]
    tests: Sequence[str] | None
    timeout: float
    memory: int


@dataclass(slots=True, kw_only=True)
class Ended:
    """How a session ended.

    Attributes:
        status: What pytest returned, None where it never did.
        exit: Exit status of the process, None where it had none.
        signal: The signal that ended it, None where none did.
        cut: Why it was ended from outside: `timeout`, `memory`, `output`, `garbled`, `interrupt`.
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
class _Watch:
    """What a session does now, and until when it may."""

    launch: Launch
    status: int | None = None
    cut: str = ""
    process: psutil.Process | None = None
    deadline: float = field(default_factory=lambda: time.monotonic() + QUIET)

    def take(self, event: Event) -> None:
        match event:
            case {"event": "hello", "pid": pid}:
                with contextlib.suppress(psutil.Error):
                    self.process = psutil.Process(pid)
            case {"event": "begin"}:
                self.deadline = time.monotonic() + self.launch.timeout
            case {"event": "end"}:
                self.deadline = time.monotonic() + QUIET
            case {"event": "over", "status": status}:
                self.status = status
            case _:
                pass

    def look(self, *files: IO[bytes], stopped: bool) -> None:
        """Find out whether the session is to be ended."""
        if stopped:
            self.cut = "interrupt"
        elif time.monotonic() > self.deadline:
            self.cut = "timeout"
        elif any(os.fstat(file.fileno()).st_size > LARGEST for file in files):
            self.cut = "output"
        elif self._resident() > self.launch.memory * _MIB:
            self.cut = "memory"

    def _resident(self) -> int:
        try:
            return 0 if self.process is None else int(self.process.memory_info().rss)
        except psutil.Error:
            return 0


class Session:
    """One process that runs pytest.

    Args:
        launch: What it runs.
        stopped: Says whether it is to end now.

    Attributes:
        ended: How it ended, once its events were taken.
    """

    def __init__(self, launch: Launch, stopped: Callable[[], bool] = lambda: False) -> None:
        self._launch, self._stopped = launch, stopped
        self.ended = Ended()

    def events(self) -> Iterator[Event]:
        """Run it, and yield what it tells.

        Once they were taken, or are no longer, all that it started has ended, too.

        Raises:
            OSError: If no process can be started, or the disk refuses.
        """
        with (
            tempfile.TemporaryDirectory(prefix="conformance-") as scratch,
            tempfile.TemporaryFile() as out,
            tempfile.TemporaryFile() as err,
        ):
            watch = _Watch(self._launch)
            with self._started(Path(scratch), out, err) as (process, events, result):
                try:
                    yield from self._heard(watch, process, events, (out, err))
                finally:
                    assert process.stdin is not None  # noqa: S101 - a pipe was asked for
                    process.stdin.close()  # the guard ends what is left
                    said = json.loads(result.read() or b"{}")
            self.ended = Ended(
                status=watch.status, exit=said.get("exit"), signal=said.get("signal"),
                cut=watch.cut, out=_tail(out), err=_tail(err),
            )  # fmt: skip

    @contextlib.contextmanager
    def _started(
        self, scratch: Path, out: IO[bytes], err: IO[bytes]
    ) -> Iterator[tuple[subprocess.Popen[bytes], int, IO[bytes]]]:
        """Start pytest under a guard; yield the guard, where events are told, and how it ended."""
        order = scratch / "order.json"
        keep = f"cache_dir={scratch / 'cache'}"  # nothing is kept from one session to another
        arguments = [*self._launch.arguments, "-o", keep]
        order.write_text(json.dumps({"arguments": arguments, "tests": self._launch.tests}))
        (told, tells), (result, ends) = os.pipe(), os.pipe()
        inside = [str(self._launch.python), "-s", str(PLUGIN), str(tells), str(order)]
        with open(result, "rb") as said, open(told, "rb", buffering=0):  # noqa: PTH123 - descriptors
            try:
                process = subprocess.Popen(
                    [sys.executable, "-I", "-S", guard.__file__, str(ends), *inside],
                    stdin=subprocess.PIPE, stdout=out, stderr=err, pass_fds=(tells, ends),
                    env=self._launch.environment, start_new_session=True,
                )  # fmt: skip
            finally:
                os.close(tells)
                os.close(ends)
            with process:
                yield process, told, said

    def _heard(
        self, watch: _Watch, process: subprocess.Popen[bytes], told: int, files: Sequence[IO[bytes]]
    ) -> Iterator[Event]:
        """Yield events until there is nothing more to wait for."""
        rest = b""
        os.set_blocking(told, False)
        with selectors.DefaultSelector() as selector:
            selector.register(told, selectors.EVENT_READ)
            while watch.status is None and not watch.cut:
                ended = process.poll() is not None
                data = _read(told) if selector.select(_LOOK) or ended else None
                *lines, rest = (rest + (data or b"")).split(b"\n")
                for line in lines:
                    if (event := _event(line)) is None:
                        watch.cut = "garbled"
                        return
                    watch.take(event)
                    yield event
                if data == b"" or (ended and data is None):
                    # Nobody can tell any more; what it has to do yet, it does soon or never.
                    break
                watch.look(*files, stopped=self._stopped())


def _event(line: bytes) -> Event | None:
    """Return the event of a line, None if a test wrote it."""
    try:
        event = json.loads(line)
    except ValueError:
        return None
    return event if isinstance(event, dict) and "event" in event else None


def _read(descriptor: int) -> bytes | None:
    """Return some bytes, empty at the end of the stream, None when there are none now."""
    try:
        return os.read(descriptor, 1 << 16)
    except BlockingIOError:
        return None


def _tail(file: IO[bytes]) -> str:
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - TAIL))
    return file.read().decode("utf-8", "replace")
