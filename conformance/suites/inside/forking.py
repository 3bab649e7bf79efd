"""Workers forked from the process that collected: a new one costs milliseconds."""

from __future__ import annotations

import contextlib
import gc
import json
import os
import select
import signal
import socket
import sys
import threading
from typing import TYPE_CHECKING, Any

import pytest

from conformance.suites.inside.channel import Channel

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

LOOK = 0.01
"""Seconds from one look at the workers to the next."""
FDS = 3
"""Descriptors that come with the order to fork: channel, standard output, standard error."""


def why_not() -> str:
    """Return why this process cannot be forked safely, empty if it can.

    A child has only the thread that forked it, and whatever the others held is never let go.
    """
    if not hasattr(os, "fork"):
        return "this system cannot fork"
    number = _threads()
    if number is None:
        return "the threads of a process cannot be counted here without psutil"
    return "" if number == 1 else f"{number} threads after collecting"


def _threads() -> int | None:
    with contextlib.suppress(OSError):
        return len(os.listdir("/proc/self/task"))  # noqa: PTH208 - stands for nothing but itself
    try:
        import psutil  # noqa: PLC0415 - where it is there
    except ImportError:
        return None
    return max(int(psutil.Process().num_threads()), threading.active_count())


class Root:
    """The process that collected; it runs no test itself.

    Args:
        config: pytest's.
        channel: Where orders come from.
    """

    def __init__(self, config: pytest.Config, channel: Channel) -> None:
        self._config, self._channel = config, channel
        self._workers: dict[int, int] = {}
        self._base: Path | None = None
        # Made while nothing stands in its way: a suite may forbid sockets.
        self._socket = socket.socket(fileno=os.dup(channel.descriptor))

    def serve(self, worker: Callable[[Channel], None]) -> None:
        """Fork workers as they are ordered; returns when no more are, in this process only.

        Args:
            worker: What each does.
        """
        with contextlib.suppress(Exception):
            self._base = self._config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]  # noqa: SLF001
        gc.collect()
        gc.freeze()  # what is there is not looked at again, nor copied for that
        while (got := self._ordered()) is not None:
            number, descriptors = got
            for stream in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__):
                with contextlib.suppress(Exception):
                    stream.flush()  # type: ignore[union-attr]
            pid = os.fork()
            if pid == 0:
                self._become(number, descriptors, worker)
            for descriptor in descriptors:
                os.close(descriptor)
            self._workers[number] = pid
            self._channel.say("forked", worker=number, pid=pid)

    def _ordered(self) -> tuple[int, list[int]] | None:
        """Return the next worker to fork, and its descriptors; tell of those that end meanwhile."""
        while True:
            ready, _, _ = select.select([self._socket], [], [], LOOK if self._workers else None)
            self._reap()
            if ready:
                data, descriptors, _, _ = socket.recv_fds(self._socket, 1 << 12, FDS)
                order = json.loads(data) if data else {"over": True}
                return None if "over" in order else (order["fork"], descriptors)

    def _reap(self) -> None:
        for number, pid in list(self._workers.items()):
            ended, status, usage = os.wait4(pid, os.WNOHANG)
            if ended:
                del self._workers[number]
                exited = os.WIFEXITED(status)
                self._channel.say(
                    "gone",
                    worker=number,
                    exit=os.WEXITSTATUS(status) if exited else None,
                    signal=None if exited else os.WTERMSIG(status),
                    max_rss=usage.ru_maxrss,
                )

    def _become(
        self, number: int, descriptors: list[int], worker: Callable[[Channel], None]
    ) -> None:
        """Be a worker, and end."""
        status = 1
        try:
            self._socket.close()
            os.close(self._channel.descriptor)
            own, out, err = descriptors
            channel = Channel(own)
            anew(self._config, out, err)
            self._own_folder(number)
            status = self._worked(worker, channel)
        finally:
            for stream in (sys.stdout, sys.stderr):
                with contextlib.suppress(Exception):
                    stream.flush()
            # What is to be done when pytest ends is done once, where it began.
            os._exit(status)

    def _worked(self, worker: Callable[[Channel], None], channel: Channel) -> int:
        status = 0
        try:
            worker(channel)
        except BaseException as error:  # noqa: BLE001 - also what pytest ends itself by
            status = 2
            if not isinstance(error, (pytest.Session.Interrupted, pytest.Session.Failed)):
                excinfo = pytest.ExceptionInfo.from_current()
                self._config.notify_exception(excinfo, self._config.option)
        channel.say("over", status=status)
        return status

    def _own_folder(self, number: int) -> None:
        """Give a worker a temporary folder of its own, below that of all."""
        if self._base is not None:
            own = self._base / f"worker{number}"
            own.mkdir(mode=0o700)
            self._config._tmp_path_factory._basetemp = own  # type: ignore[attr-defined]  # noqa: SLF001


def anew(config: Any, out: int, err: int) -> None:
    """Begin capturing anew in a child: its parent's files have one offset for all of them.

    Args:
        config: pytest's.
        out: What is to be standard output.
        err: The same of standard error.
    """
    manager = config.pluginmanager.getplugin("capturemanager")
    if manager is not None:
        manager.stop_global_capturing()
    os.dup2(out, 1)
    os.dup2(err, 2)
    if manager is not None:
        manager.start_global_capturing()
        manager.suspend_global_capture(in_=False)
    with contextlib.suppress(Exception):  # pytest keeps a copy of its own for tracebacks of crashes
        from _pytest.faulthandler import fault_handler_stderr_fd_key  # noqa: PLC0415

        os.dup2(err, config.stash[fault_handler_stderr_fd_key])
    os.close(out)
    os.close(err)
    signal.set_wakeup_fd(-1)
