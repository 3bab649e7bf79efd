"""Supervision of jobs in child processes: timeouts, memory limits, output and exit statuses."""

from __future__ import annotations

import contextlib
import os
import selectors
import shutil
import signal
import sys
import tempfile
import time
import traceback
from typing import TYPE_CHECKING, Any

from conformance.worker import frames
from conformance.worker.cgroups import MemoryGroups
from conformance.worker.processes import (
    PR_SET_CHILD_SUBREAPER,
    PR_SET_PDEATHSIG,
    kill_strays,
    kill_tree,
    list_children,
    measure_tree,
    prctl,
)

if TYPE_CHECKING:
    import resource
    from collections.abc import Callable

    from conformance.worker.cgroups import MemoryGroup

    Send = Callable[[dict[str, Any], bytes], None]
    Main = Callable[[dict[str, Any], int], None]

TAIL = 16 * 1024
"""Bytes kept from the end of each of a job's stdout and stderr."""
POLL = 0.1
"""Seconds between two checks of a job: reading `/proc` slows down the end of a process."""
DRAIN = 8
"""Reads of a dead job's pipe: more than it holds, yet finite, because a stray may still write."""
REUSE = 0.5
"""Fraction of its memory limit up to which a process gets another job."""
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


class Child:
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
            pipes = {name: _pipe(undo) for name in ("record", "stdout", "stderr")}
            stdin, self._stdin = _pipe(undo)
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


def _pipe(undo: contextlib.ExitStack) -> tuple[int, int]:
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


class Supervisor:
    """Starts jobs, forwards their frames, and reports how each ended.

    Args:
        selector: Selector with which the children's pipes are registered.
        main: Runs in the child with the request and the descriptor for its frames.
        send: Called with a header and a body: `{"kind": "event", "job": ID, ...}` for each frame
            of a job, then `{"kind": "done", "job": ID, ...}` once.
        close: Descriptors of the parent that a child must not hold.
        reuse: Fraction of its memory limit above which a process gets no other job.
    """

    def __init__(
        self,
        selector: selectors.BaseSelector,
        main: Main,
        send: Send,
        close: tuple[int, ...],
        *,
        reuse: float = REUSE,
    ) -> None:
        self._selector = selector
        self._main = main
        self._send = send
        self._close = close
        self._reuse = reuse
        self._children: dict[int, Child] = {}
        self._others = set(list_children(os.getpid()))  # started earlier, e.g. by a conftest
        self._groups = MemoryGroups()
        self._strays = False

    @property
    def busy(self) -> bool:
        """Whether a job is running."""
        return any(child.request is not None for child in self._children.values())

    @property
    def children(self) -> tuple[Child, ...]:
        """The processes that have not ended."""
        return tuple(self._children.values())

    def start(self, request: dict[str, Any], share: str) -> None:
        """Start a job in an idle process with the same share key, or in a new child.

        Args:
            request: Request with the job.
            share: Key of the jobs that may follow in its process, empty for none.

        Raises:
            OSError: If the host has no process, descriptor or disk left.
        """
        for child in self._children.values() if share else ():
            if child.share == share and child.request is None and not child.ended:
                child.give(request)
                return
        # A job may use every descriptor that it inherits, so it must not get those of other jobs.
        others = (fd for other in self._children.values() for fd in other.descriptors)
        # A cgroup has one limit, and jobs that share a process have different ones.
        group = None if share else self._groups.make(int(request["memory"]) * 2**20)
        try:
            child = Child(request, share, self._main, (*self._close, *others), group)
        except BaseException:
            self._release(group)
            raise
        self._children[child.pid] = child
        for fd in child.fds:
            self._selector.register(fd, selectors.EVENT_READ, child)

    def pump(self, child: Child, fd: int) -> None:
        """Read the available data of one of a child's pipes."""
        data = _read_available(fd)
        if data == b"":
            self._selector.unregister(fd)
            os.close(fd)
            del child.fds[fd]
        elif data is not None:
            self._take(child, child.fds[fd], data)

    def _take(self, child: Child, name: str, data: bytes) -> None:
        if name != "record":
            child.tails[name].feed(data)
            return
        try:
            arrived = child.decoder.feed(data)
        except frames.FrameTooLargeError:
            # Not waited for: the body would fill the memory of this process.
            child.kill("observation")
            return
        except frames.FrameError:
            child.kill("garbled")
            return
        for frame in arrived:
            if child.request is None:  # sent by a process without a job
                child.kill("garbled")
            elif "idle" in frame.header:
                self._idle(child)
            else:
                if isinstance(seconds := frame.header.get("timeout"), (int, float)):
                    child.deadline = time.monotonic() + seconds  # a part of the job begins
                header = {**frame.header, "kind": "event", "job": child.request["id"]}
                # The limit is for all frames of the job together.
                child.decoder.largest -= len(frame.body)
                self._send(header, frame.body)

    def _idle(self, child: Child) -> None:
        """Report a job that has ended while its process continues."""
        # Its output may still be in the pipes, and would be taken for that of the next job.
        self._drain(child, "stdout", "stderr")
        # A short job may exceed its memory between two checks.
        child.check_limits()
        if child.ended:
            return
        self._report(child, exit=0, signal=None)
        child.request = None
        if child.peak > child.memory * self._reuse:
            child.kill("idle")

    def watch(self) -> None:
        """Check the limits of every child when due, and report children that ended."""
        for child in list(self._children.values()):
            if time.monotonic() >= child.due:
                child.check_limits()
            pid, status, usage = os.wait4(child.pid, os.WNOHANG)
            if pid:
                self._finish(child, status, usage)
                self._strays = True
        # Strays can only appear when a child ends; those that outlive an attempt are tried again.
        if self._strays:
            self._strays = not kill_strays({*self._children, *self._others})
            self._groups.close()

    def _release(self, group: MemoryGroup | None) -> None:
        if group is not None:
            self._groups.give_back(group)

    def _finish(self, child: Child, status: int, usage: resource.struct_rusage) -> None:
        del self._children[child.pid]
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, signal.SIGKILL)  # processes that the job left in its group
        # Events before a crash are observations, and the last output explains it.
        self._drain(child, *child.fds.values())
        for fd in child.fds:
            self._selector.unregister(fd)
            os.close(fd)
        child.close()
        if child.group is not None and child.group.has_killed():
            child.ended = child.ended or "memory"
        self._release(child.group)
        # `ru_maxrss` is in bytes on macOS and in KiB on Linux.
        scale = 1 if sys.platform == "darwin" else 1024
        child.peak = max(child.peak, usage.ru_maxrss * scale)
        if child.request is not None:
            self._report(
                child,
                exit=os.WEXITSTATUS(status) if os.WIFEXITED(status) else None,
                signal=os.WTERMSIG(status) if os.WIFSIGNALED(status) else None,
            )

    def _drain(self, child: Child, *names: str) -> None:
        for fd, name in list(child.fds.items()):
            for _ in range(DRAIN if name in names else 0):
                if not (data := _read_available(fd)):
                    break
                self._take(child, name, data)

    def _report(self, child: Child, **ending: int | None) -> None:
        assert child.request is not None  # noqa: S101 - only a job in hand is reported
        self._send(
            {
                "kind": "done",
                "job": child.request["id"],
                **ending,
                "ended": child.ended,
                "max_rss_bytes": child.peak,
                "seconds": time.monotonic() - child.start,
                "stdout": child.tails["stdout"].text(),
                "stderr": child.tails["stderr"].text(),
            },
            b"",
        )

    def stop(self) -> None:
        """Kill every child and wait for it."""
        for child in list(self._children.values()):
            child.kill("cancelled")
            with contextlib.suppress(ChildProcessError):
                os.waitpid(child.pid, 0)
            child.close()
            self._release(child.group)
        self._children.clear()
        kill_strays(self._others)
        self._groups.close()


def _read_available(fd: int) -> bytes | None:
    """Return available bytes, empty at the end of the stream, None if there are none yet."""
    try:
        return os.read(fd, 1 << 18)
    except BlockingIOError:
        return None
