"""Jobs of several processes: a launcher starts the ranks and relays their frames.

The process of the job forks a process for each rank, before any has a backend, and stays their
parent in the job's process group. Frames of a rank are relayed with its number,
`{"rank": N, ...}`. The launcher adds `{"rank": N, "lost": {"exit", "signal"}}` for a rank that
ended before its job did, `{"rank": N, "left": True}` for a rank that it ended because that waited
for a failed rank, and finally `{"end": True}`.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import socket
import sys
import time
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any

from conformance.worker import frames
from conformance.worker.processes import PR_SET_PDEATHSIG, prctl
from conformance.worker.supervisor import DRAIN

if TYPE_CHECKING:
    from collections.abc import Callable

    RunJob = Callable[[dict[str, Any], int], None]

HOST = "127.0.0.1"
LOOK = 0.25
"""Seconds between two measurements of the ranks' processor time."""
BUSY = 0.1
"""Fraction of a processor that a working rank uses, unless it waits for one on a loaded host."""
PATIENCE = 4
"""Measurements without work after which ranks count as waiting for one that has failed."""
REAP = 1.0
"""Seconds that a rank whose pipe has closed may take to end."""
TICKS = os.sysconf("SC_CLK_TCK")


def hold_port() -> socket.socket:
    """Return a socket that holds a port of the loopback address for the ranks' coordinator.

    The socket is bound and never listens. The kernel does not assign a bound port to others, so
    that concurrent jobs get different ports. The coordinator is bound with SO_REUSEPORT like this
    socket, and can use the port nevertheless.
    """
    reserved = socket.socket()
    try:
        reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        reserved.bind((HOST, 0))
    except OSError:
        reserved.close()
        raise
    return reserved


def launch(request: dict[str, Any], fd: int, run: RunJob) -> None:
    """Run one job as several ranks, and relay their frames.

    Args:
        request: The job; `processes` is the number of ranks, which share `devices` evenly.
        fd: Descriptor to which frames are written.
        run: Runs the job as one rank: its request has `rank`, see `conformance.kit.distributed`.
    """
    count = request["processes"]
    devices = request["devices"] // count
    # Held for the whole job: the coordinator binds the port later, and no other job may get it.
    with hold_port() as reserved:
        coordinator = f"{HOST}:{reserved.getsockname()[1]}"
        place = {"count": count, "devices": devices, "coordinator": coordinator}
        launcher = Launcher(fd)
        try:
            for number in range(count):
                rank = {"number": number, **place}
                launcher.start({**request, "devices": devices, "rank": rank}, run)
            launcher.watch()
        finally:
            launcher.stop()
    frames.write(fd, {"end": True})


class Labels:
    """Labels the lines of several ranks on one stream with the rank's number."""

    def __init__(self) -> None:
        self._open: int | None = None

    def feed(self, rank: int, data: bytes) -> bytes:
        """Return labelled output of a rank; an unfinished line of another rank is ended first."""
        labelled = b""
        for line in data.splitlines(keepends=True):
            if self._open != rank:
                labelled += b"" if self._open is None else b"\n"
                labelled += b"[rank %d] " % rank
            labelled += line
            self._open = None if line.endswith(b"\n") else rank
        return labelled


class Rank:
    """The process of one rank.

    Attributes:
        number: Number of the rank, from 0.
        pid: Process id.
        fds: Names of its open pipes, by descriptor.
        open: Whether the rank has not finished its part of the job.
        failed: Whether the rank raised an exception, or was lost.
        ending: End of the process, empty while it runs.
    """

    def __init__(self, request: dict[str, Any], run: RunJob) -> None:
        self.number: int = request["rank"]["number"]
        self.decoder = frames.Decoder(int(request["observation_mb"]) * 2**20)
        self.open, self.failed = True, False
        self.ending: dict[str, Any] = {}
        pipes = {name: os.pipe() for name in ("record", "stdout", "stderr")}
        self.pid = os.fork()
        if self.pid == 0:
            _become_rank(request, run, {name: pipe[1] for name, pipe in pipes.items()})
        for _, write_end in pipes.values():  # the next rank must not inherit it either
            os.close(write_end)
        self.fds = {read_end: name for name, (read_end, _) in pipes.items()}
        for fd in self.fds:
            os.set_blocking(fd, False)

    @property
    def silent(self) -> bool:
        """Whether the rank has closed the pipe of its frames."""
        return "record" not in self.fds.values()

    def reap(self, seconds: float = 0.0) -> bool:
        """Return whether the process has ended, after waiting for up to some seconds."""
        end = time.monotonic() + seconds
        while not self.ending:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.ending = {
                    "exit": os.WEXITSTATUS(status) if os.WIFEXITED(status) else None,
                    "signal": os.WTERMSIG(status) if os.WIFSIGNALED(status) else None,
                }
            elif time.monotonic() >= end:
                return False
            else:
                time.sleep(0.001)
        return True

    def kill(self) -> None:
        """End the process and wait for it."""
        if not self.reap():
            os.kill(self.pid, signal.SIGKILL)
            self.reap(REAP)


def _become_rank(request: dict[str, Any], run: RunJob, pipes: dict[str, int]) -> None:
    """Turn the forked child into a rank; never returns."""
    try:
        # The launcher may be killed before it can end its ranks.
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        os.dup2(pipes["stdout"], 1)
        os.dup2(pipes["stderr"], 2)
        run(request, pipes["record"])
        _flush()
        frames.write(pipes["record"], {"done": True})
        while True:  # the coordinator and the collectives live until the last rank is done
            signal.pause()
    except BaseException:  # reported on standard error
        traceback.print_exc()
        _flush()
    finally:
        os._exit(70)


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):  # a case may have closed it
            stream.flush()


class Launcher:
    """Starts the ranks of one job, relays their frames and ends them.

    Args:
        fd: Descriptor to which frames are written.
    """

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._ranks: list[Rank] = []
        self._selector = selectors.DefaultSelector()
        # Written to the streams of the launcher, whose tails the supervisor keeps.
        self._labels = {"stdout": (1, Labels()), "stderr": (2, Labels())}

    def start(self, request: dict[str, Any], run: RunJob) -> None:
        """Fork a process for a rank."""
        rank = Rank(request, run)
        self._ranks.append(rank)
        for fd in rank.fds:
            self._selector.register(fd, selectors.EVENT_READ, rank)

    def watch(self) -> None:
        """Relay frames until every rank is done, lost, or waits for a failed rank."""
        work = Work()
        while any(rank.open for rank in self._ranks):
            for key, _ in self._selector.select(LOOK):
                self._pump(key.data, key.fd)
                if key.data.open and key.data.silent:  # in the order in which ranks are lost
                    self._lose(key.data)
            for rank in self._ranks:
                # Processes that the rank has started may hold its pipes open after its end.
                if rank.open and rank.reap():
                    self._lose(rank)
            # A rank that waits in a collective for a failed rank would wait until the timeout.
            pids = [rank.pid for rank in self._ranks if rank.open]
            if any(rank.failed for rank in self._ranks) and work.count_idle(pids) >= PATIENCE:
                self._release_waiting()

    def stop(self) -> None:
        """End the ranks that still run, and relay their last output."""
        for rank in self._ranks:
            rank.kill()
            for fd in list(rank.fds):
                self._pump(rank, fd)
        self._selector.close()

    def _pump(self, rank: Rank, fd: int) -> None:
        """Relay the data in one of the pipes of a rank."""
        for _ in range(DRAIN):
            try:
                data = os.read(fd, 1 << 18)
            except BlockingIOError:
                return
            if data:
                self._take(rank, rank.fds[fd], data)
                continue
            self._selector.unregister(fd)
            os.close(fd)
            del rank.fds[fd]
            return

    def _take(self, rank: Rank, name: str, data: bytes) -> None:
        if name != "record":
            target, labels = self._labels[name]
            _write(target, labels.feed(rank.number, data))
            return
        try:
            arrived = rank.decoder.feed(data)
        except frames.FrameError:
            # Not its exit status: that it was killed here is no crash of the rank.
            rank.kill()
            rank.ending = {"garbled": True}
            return
        for frame in arrived:
            if "done" in frame.header:
                rank.open = False
                continue
            rank.failed = rank.failed or not {"error", "unsupported"}.isdisjoint(frame.header)
            self._relay(rank, frame.header, frame.body)

    def _lose(self, rank: Rank) -> None:
        rank.reap(REAP)
        for fd, name in list(rank.fds.items()):
            if name == "record":
                self._pump(rank, fd)
        rank.open, rank.failed = False, True
        self._relay(rank, {"lost": rank.ending})

    def _release_waiting(self) -> None:
        """End the ranks that wait for a failed rank."""
        for rank in self._ranks:
            if rank.open:
                rank.open = False
                rank.kill()
                self._relay(rank, {"left": True})

    def _relay(self, rank: Rank, header: dict[str, Any], body: bytes = b"") -> None:
        frames.write(self._fd, {**header, "rank": rank.number}, body)


def _write(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


class Work:
    """Measures whether processes compute, or would if the host had a free processor."""

    def __init__(self) -> None:
        self._seen: dict[int, float] = {}
        self._last = 0.0
        self._idle = 0

    def count_idle(self, pids: list[int]) -> int:
        """Return the number of consecutive measurements without work of any process.

        Args:
            pids: The processes, which are measured at most once in `LOOK` seconds.
        """
        now = time.monotonic()
        if now - self._last >= LOOK:
            used = {pid: _read_processor_seconds(pid) for pid in pids}
            # On a loaded host this process is late as well, and the ranks got no more time.
            enough = BUSY * min(now - self._last, 2 * LOOK)
            # The default lets a process count as working at its first measurement.
            worked = any(
                seconds - self._seen.get(pid, -enough) >= enough or _is_runnable(pid)
                for pid, seconds in used.items()
            )
            self._idle = 0 if worked else self._idle + 1
            self._seen, self._last = used, now
        return self._idle


def _is_runnable(pid: int) -> bool:
    """Return whether a thread of a process runs, or waits for a processor or the disk."""
    # The name of a program, in parentheses, may contain spaces and parentheses.
    try:
        for stat in Path(f"/proc/{pid}/task").glob("*/stat"):
            if stat.read_bytes().rpartition(b")")[2].split()[0] in {b"R", b"D"}:
                return True
    except OSError:  # the thread, or all of them, ended
        return False
    return False


def _read_processor_seconds(pid: int) -> float:
    """Return the processor seconds of a process, 0 if they are unknown."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return 0.0
    # `utime` and `stime`, fields 14 and 15 of proc(5), without the two before the last parenthesis.
    return (int(fields[11]) + int(fields[12])) / TICKS
