"""Workers forked from the process that collected: a new one costs milliseconds."""

from __future__ import annotations

import contextlib
import gc
import os
import sys
import threading
from typing import TYPE_CHECKING, Any

import pytest

from conformance.suites.inside.channel import Channel
from conformance.worker.processes import take_standard_input
from conformance.worker.request_loop import RequestLoop

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def why_not() -> str:
    """Return why this process cannot be forked safely, empty if it can.

    A child has only the thread that forked it; locks of other threads are never released.
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
        import psutil  # noqa: PLC0415 - if it is installed
    except ImportError:
        return None
    return max(int(psutil.Process().num_threads()), threading.active_count())


class ForkServer(RequestLoop):
    """The process that collected a suite: it forks workers and runs no test itself.

    Args:
        config: pytest's.
        channel: Where requests come from.
        worker: Runs in each worker with its channel and its first request.
    """

    def __init__(
        self,
        config: pytest.Config,
        channel: Channel,
        worker: Callable[[Channel, dict[str, Any]], None],
    ) -> None:
        self._config, self._worker = config, worker
        self._folder = os.getcwd()  # noqa: PTH109 - pytest may run in any folder
        self._base: Path | None = None
        with contextlib.suppress(Exception):
            self._base = config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]  # noqa: SLF001
        super().__init__(channel.requests, channel.replies, self._become_worker, reuse=1.0)

    def serve(self) -> None:
        """Fork workers as they are needed; returns at the end of the requests, in this process."""
        gc.collect()
        gc.freeze()  # workers neither collect nor copy these objects
        try:
            while self._turn():
                pass
        finally:
            self._supervisor.stop()

    def _accept(self, request: dict[str, Any]) -> None:
        _flush()  # a worker would write it a second time
        super()._accept(request)

    def _send(self, header: dict[str, Any], body: bytes = b"") -> None:
        super()._send({"relay": header}, body)

    def _become_worker(self, request: dict[str, Any], fd: int) -> None:
        """Run in the worker."""
        channel, out, err = Channel(take_standard_input(), fd), os.dup(1), os.dup(2)
        restart_capture(self._config, out, err)
        os.chdir(self._folder)
        if self._base is not None:
            own = self._base / f"worker{os.getpid()}"
            own.mkdir(mode=0o700)
            self._config._tmp_path_factory._basetemp = own  # type: ignore[attr-defined]  # noqa: SLF001
        status = 0
        try:
            self._worker(channel, request)
        except BaseException as error:  # noqa: BLE001 - also what pytest ends itself by
            status = 2
            if not isinstance(error, (pytest.Session.Interrupted, pytest.Session.Failed)):
                excinfo = pytest.ExceptionInfo.from_current()
                self._config.notify_exception(excinfo, self._config.option)
        _flush()
        # What is to be done when pytest ends is done once, where it began.
        os._exit(status)


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__):
        with contextlib.suppress(Exception):  # a test may have replaced them
            stream.flush()  # type: ignore[union-attr]


def restart_capture(config: Any, out: int, err: int) -> None:
    """Restart capturing in a child: the files of its parent have one offset for all children.

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
