"""Supervision of jobs in child processes: timeouts, memory limits, output and exit statuses."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import sys
import time
from typing import TYPE_CHECKING, Any

from conformance.worker import frames
from conformance.worker.cgroups import MemoryGroups
from conformance.worker.job_process import JobProcess
from conformance.worker.processes import (
    kill_strays,
    list_children,
)

if TYPE_CHECKING:
    import resource
    from collections.abc import Callable

    from conformance.worker.cgroups import MemoryGroup
    from conformance.worker.job_process import Main

    Send = Callable[[dict[str, Any], bytes], None]

DRAIN = 8
"""Reads of a dead job's pipe: more than it holds, yet finite, because a stray may still write."""
MOST_IDLE = 4
"""Processes that wait for another job with their share key; each holds memory."""
REUSE = 0.5
"""Fraction of its memory limit up to which a process gets another job."""


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
        self._children: dict[int, JobProcess] = {}
        self._others = set(list_children(os.getpid()))  # started earlier, e.g. by a conftest
        self._groups = MemoryGroups()
        self._strays = False

    @property
    def busy(self) -> bool:
        """Whether a job is running."""
        return any(child.request is not None for child in self._children.values())

    @property
    def children(self) -> tuple[JobProcess, ...]:
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
        idle = [child for child in self._children.values() if child.request is None]
        for child in idle[:-MOST_IDLE]:
            child.kill("idle")
        # A job may use every descriptor that it inherits, so it must not get those of other jobs.
        others = (fd for other in self._children.values() for fd in other.descriptors)
        # A cgroup has one limit, and jobs that share a process have different ones.
        group = None if share else self._groups.make(int(request["memory"]) * 2**20)
        try:
            child = JobProcess(request, share, self._main, (*self._close, *others), group)
        except BaseException:
            self._release(group)
            raise
        self._children[child.pid] = child
        for fd in child.fds:
            self._selector.register(fd, selectors.EVENT_READ, child)

    def pump(self, child: JobProcess, fd: int) -> None:
        """Read the available data of one of a child's pipes."""
        data = _read_available(fd)
        if data == b"":
            self._selector.unregister(fd)
            os.close(fd)
            del child.fds[fd]
        elif data is not None:
            self._take(child, child.fds[fd], data)

    def _take(self, child: JobProcess, name: str, data: bytes) -> None:
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
                self._finish_job(child)
            else:
                if isinstance(seconds := frame.header.get("timeout"), (int, float)):
                    child.deadline = time.monotonic() + seconds  # a part of the job begins
                header = {**frame.header, "kind": "event", "job": child.request["id"]}
                # The limit is for all frames of the job together.
                child.decoder.largest -= len(frame.body)
                self._send(header, frame.body)

    def _finish_job(self, child: JobProcess) -> None:
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

    def _finish(self, child: JobProcess, status: int, usage: resource.struct_rusage) -> None:
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

    def _drain(self, child: JobProcess, *names: str) -> None:
        for fd, name in list(child.fds.items()):
            for _ in range(DRAIN if name in names else 0):
                if not (data := _read_available(fd)):
                    break
                self._take(child, name, data)

    def _report(self, child: JobProcess, **ending: int | None) -> None:
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
