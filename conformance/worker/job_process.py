"""The process of a job: its pipes, scratch folder, limits and the last lines of its output."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sys
import tempfile
import time
import traceback
from typing import TYPE_CHECKING, Any

from conformance.worker import frames
from conformance.worker.processes import (
    PR_SET_CHILD_SUBREAPER,
    PR_SET_PDEATHSIG,
    kill_tree,
    measure_tree,
    prctl,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.worker.cgroups import MemoryGroup

    Main = Callable[[dict[str, Any], int], None]

TAIL = 16 * 1024
"""Bytes kept from the end of each of a job's stdout and stderr."""
POLL = 0.1
"""Seconds between two checks of a job: reading `/proc` slows down the end of a process."""
SCRATCH = "CONFORMANCE_SCRATCH"
"""Variable that names the folder of a worker's temporary files, removed when it ends."""


class Tail:
    """The last bytes of a stream, and their total number."""

    def __init__(self, limit: int = TAIL) -> None:
        self._limit = limit
        self._kept = bytearray()
        self.total = 0

    def feed(self, data: bytes) -> None:
        """Take the next bytes."""
        self.total += len(data)
        self._kept += data
        del self._kept[: -self._limit]

    def text(self) -> str:
        """Return the last bytes as text, preceded by the number of dropped bytes."""
        kept = self._kept.decode("utf-8", "replace")
        dropped = self.total - len(self._kept)
        return f"[{dropped} bytes dropped]\n{kept}" if dropped else kept


class JobProcess:
    """A process that runs a job, or several jobs one after another.

    Args:
        request: First job.
        share: Key of the jobs that share the process, empty for a single job.
        main: Runs in the child with the request and the descriptor for its frames.
        close: Descriptors of the parent that the child must not hold.
        group: Cgroup of the child, None if the host allows none.

    Attributes:
        pid: The process, leader of its own process group.
        share: Key of the jobs that share the process, see `conformance.worker.job`.
        request: Current job, None between two jobs.
        ended: Why the supervisor ended it: `timeout`, `memory`, `output` or `observation`; empty
            otherwise.
        due: Time of the next check of its limits.
    """

    def __init__(
        self,
        request: dict[str, Any],
        share: str,
        main: Main,
        close: tuple[int, ...],
        group: MemoryGroup | None = None,
    ) -> None:
        self.share = share
        self.group = group
        self.ended = ""
        self.decoder = frames.Decoder()
        self._take(request)
        with contextlib.ExitStack() as undo:  # a fork that fails leaves nothing behind
            self.scratch = tempfile.mkdtemp(prefix="job-", dir=os.environ.get(SCRATCH))
            undo.callback(shutil.rmtree, self.scratch, ignore_errors=True)
            pipes = {name: _open_pipe(undo) for name in ("record", "stdout", "stderr")}
            stdin, self._stdin = _open_pipe(undo)
            self.pid = os.fork()
            undo.pop_all()
        # A single job has an empty standard input. The child itself must not hold the write end,
        # or it would never see the end of its requests.
        if not share or self.pid == 0:
            self.close_input()
        if self.pid == 0:
            with contextlib.suppress(OSError):  # without a cgroup its memory is only summed up
                if group is not None:
                    group.enter()
            _become_job(request, main, pipes, self.scratch, stdin=stdin, close=close)
        os.close(stdin)
        for _, write_end in pipes.values():
            os.close(write_end)
        self.fds = {read_end: name for name, (read_end, _) in pipes.items()}
        for fd in self.fds:
            os.set_blocking(fd, False)

    def _take(self, request: dict[str, Any]) -> None:
        self.request: dict[str, Any] | None = request
        self.start = time.monotonic()
        self.deadline = self.start + float(request["timeout"])
        self.due = self.start + POLL
        self.memory = int(request["memory"]) * 2**20
        self.printed = int(request.get("printed_mb", 0)) * 2**20
        self.decoder.largest = int(request["observation_mb"]) * 2**20 * request["processes"]
        self.tails = {"stdout": Tail(), "stderr": Tail()}
        self.peak = 0

    def give(self, request: dict[str, Any]) -> None:
        """Start the next job in an idle process."""
        self._take(request)
        self.send(request)

    def send(self, request: dict[str, Any]) -> None:
        """Write a request to the standard input of the process, without a new job."""
        with contextlib.suppress(BrokenPipeError):  # it has died, which `watch` will report
            frames.write(self._stdin, request)

    def lift_limits(self) -> None:
        """Check no limits from now on: the process is a fork server, which checks its children."""
        self.deadline, self.memory = float("inf"), sys.maxsize

    def close_input(self) -> None:
        """Close the standard input of the process, which ends its requests."""
        if self._stdin >= 0:
            os.close(self._stdin)
        self._stdin = -1

    @property
    def descriptors(self) -> tuple[int, ...]:
        """Descriptors of the server for its pipes, which other jobs must not inherit."""
        return (*self.fds, *([self._stdin] if self._stdin >= 0 else ()))

    def close(self) -> None:
        """Release the input and the scratch folder of a process that has ended."""
        self.close_input()
        shutil.rmtree(self.scratch, ignore_errors=True)

    def check_limits(self) -> None:
        """Kill the job if it exceeds its timeout or its memory limit."""
        self.due = time.monotonic() + POLL
        if self.ended or self.request is None:
            return
        memory = measure_tree(self.pid, self.memory)
        self.peak = max(self.peak, memory)
        if time.monotonic() > self.deadline:
            self.kill("timeout")
        elif memory > self.memory:
            self.kill("memory")
        elif self.printed and max(tail.total for tail in self.tails.values()) > self.printed:
            self.kill("output")

    def kill(self, why: str) -> None:
        """Kill the job with all of its descendants, in any process group or session."""
        self.ended = why
        kill_tree(self.pid)
        # The group too: a member whose parent has ended is no longer below the job.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)


def _open_pipe(undo: contextlib.ExitStack) -> tuple[int, int]:
    """Return the two ends of a pipe, which `undo` closes."""
    ends = os.pipe()
    for fd in ends:
        undo.callback(os.close, fd)
    return ends


def _become_job(
    request: dict[str, Any],
    main: Main,
    pipes: dict[str, tuple[int, int]],
    scratch: str,
    *,
    stdin: int,
    close: tuple[int, ...],
) -> None:
    """Turn the forked child into the job; never returns."""
    status = 70
    try:
        os.setsid()
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        # A process that the job leaves by a double fork stays below it: its memory counts, and it
        # can be ended with the job.
        prctl(PR_SET_CHILD_SUBREAPER, 1)
        # The child inherits the handlers of the server.
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        for fd in close:  # before the streams are set: one of these may be standard input
            os.close(fd)
        os.dup2(stdin, 0)
        os.dup2(pipes["stdout"][1], 1)
        os.dup2(pipes["stderr"][1], 2)
        for read_end, _ in pipes.values():
            os.close(read_end)
        os.chdir(scratch)
        os.environ["TMPDIR"] = scratch
        # `tempfile` remembers the folder that the server used.
        tempfile.tempdir = None
        main(request, pipes["record"][1])
        status = 0
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException:  # reported on standard error
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(status)
