"""A session of pytest: one process in a cell, its events, and whatever way it ends."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass, field
from typing import IO, TYPE_CHECKING, Any

from conformance.engine import guard
from conformance.scratch import temporary_folder
from conformance.suites.running.told import Told
from conformance.suites.running.watch import Ended, Watch, channel, give, heard, tail
from conformance.suites.suite import PLUGIN

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
    from pathlib import Path

    from conformance.suites.running.watch import Event
    from conformance.suites.suite import Examples


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """What a session collects, and where.

    Attributes:
        python: Interpreter of the cell.
        environment: Environment variables.
        folder: Working directory.
        arguments: Arguments of pytest.
        timeout: Seconds that one test may take.
        memory: MiB that the process may hold.
        examples: How Hypothesis looks for examples, None where the suite alone says so.
        facts: What is told of what is tested: `module:attribute` by name.
        forks: Whether it may fork workers.
        seed_random: Whether `random` begins each test with its name.
        data: Whether the data files that tests read are noted.
    """

    python: Path
    environment: Mapping[str, str]
    folder: Path
    arguments: Sequence[str]
    timeout: float
    memory: int
    examples: Examples | None = None
    facts: Mapping[str, str] = field(default_factory=dict)
    forks: bool = False
    seed_random: bool = False
    data: bool = True

    def order(self, scratch: Path) -> bytes:
        """Return it as the process reads it.

        Args:
            scratch: A folder for what it keeps.
        """
        keep = f"cache_dir={scratch / 'cache'}"  # nothing is kept from one session to another
        how = self.examples
        return json.dumps({
            "arguments": [*self.arguments, "-o", keep],
            "facts": dict(self.facts),
            "forks": self.forks,
            "data": self.data,
            "examples": how and {**asdict(how), "seed_random": self.seed_random},
        }).encode()  # fmt: skip


class Session:
    """One process that runs pytest.

    Args:
        launch: What it collects.
        stopped: Says whether it is to end now.

    Attributes:
        launch: What it collects.
        stopped: Says whether it is to end now.
        keeps: What is held until it has ended.
        told: What it told before any test.
        ended: How it ended, once its events were taken.
    """

    def __init__(self, launch: Launch, stopped: Callable[[], bool] = lambda: False) -> None:
        self.launch, self.stopped = launch, stopped
        self.keeps = contextlib.ExitStack()
        self._cut = False
        self.told = Told()
        self.ended = Ended()
        self._events = self._all()
        self._pending: list[Event] = []
        self._line: socket.socket | None = None
        self._watch = Watch(launch.timeout, launch.memory)

    @property
    def forked(self) -> bool:
        """Whether another one costs next to nothing."""
        return False

    def collect(self) -> bool:
        """Start it, and go on until it is ready to run tests.

        Returns:
            Whether it is; else it has ended, or runs what it wants to.

        Raises:
            OSError: If no process can be started, or the disk refuses.
        """
        if self.told.forks is not None:
            return True
        for event in self._events:
            if event["event"] == "begin":
                self._pending.append(event)
                return False
            if self.told.forks is not None:
                return True
        return False

    def send(self, order: Mapping[str, Any], descriptors: Sequence[int] = ()) -> None:
        """Give an order; one that has ended takes none.

        Args:
            order: The order.
            descriptors: What comes with it.
        """
        if self._line is not None:
            give(self._line, order, descriptors)

    def events(self) -> Iterator[Event]:
        """Yield what it tells from now on, and start it if it was not.

        Once they were taken, or are no longer, all that it started has ended, too.

        Raises:
            OSError: If no process can be started, or the disk refuses.
        """
        self._watch.rest()  # it may have waited
        try:
            yield from self._pending
            yield from self._events
        finally:
            self.close()

    def close(self) -> None:
        """End it, and all that it started."""
        self._events.close()
        self.keeps.close()

    def stop(self) -> None:
        """Have it end while somebody else takes its events."""
        self._cut = True

    def _stops(self) -> bool:
        return self._cut or self.stopped()

    def _all(self) -> Generator[Event]:
        with (
            temporary_folder("session") as scratch,
            tempfile.TemporaryFile() as out,
            tempfile.TemporaryFile() as err,
        ):
            watch, said = self._watch, {}
            with self._started(scratch, out, err) as (process, line, result):
                self._line = line
                try:
                    watching = heard(
                        watch, line, lambda: process.poll() is not None, (out, err), self._stops
                    )
                    for event in watching:
                        self.told.take(event)
                        yield event
                finally:
                    self._line = None
                    assert process.stdin is not None  # noqa: S101 - a pipe was asked for
                    process.stdin.close()  # the guard ends what is left
                    said = json.loads(result.read() or b"{}")
                    self.ended = Ended(
                        status=watch.status, exit=said.get("exit"), signal=said.get("signal"),
                        cut=watch.cut, out=tail(out), err=tail(err),
                    )  # fmt: skip

    @contextlib.contextmanager
    def _started(
        self, scratch: Path, out: IO[bytes], err: IO[bytes]
    ) -> Iterator[tuple[subprocess.Popen[bytes], socket.socket, IO[bytes]]]:
        """Start pytest under a guard; yield the guard, its line, and how pytest ended."""
        order = scratch / "order.json"
        order.write_bytes(self.launch.order(scratch))
        (ours, theirs), (result, ends) = channel(), os.pipe()
        python = str(self.launch.python)
        inside = [python, "-s", str(PLUGIN), str(theirs.fileno()), str(order)]
        with ours, open(result, "rb") as said:  # noqa: PTH123 - descriptors
            # What tests leave in the folder of temporary files goes with the session.
            environment = {**self.launch.environment, "TMPDIR": str(scratch)}
            try:
                process = subprocess.Popen(
                    [sys.executable, "-I", "-S", guard.__file__, str(ends), *inside],
                    stdin=subprocess.PIPE, stdout=out, stderr=err,
                    pass_fds=(theirs.fileno(), ends), env=environment,
                    cwd=self.launch.folder, start_new_session=True,
                )  # fmt: skip
            finally:
                theirs.close()
                os.close(ends)
            with process:
                yield process, ours, said
