"""Workers forked from the process that collected a suite: a new one costs milliseconds."""

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


def explain_unforkable() -> str:
    """Return why this process cannot be forked safely, empty if it can.

    A child has only the thread that forked it; locks of other threads are never released.
    """
    if not hasattr(os, "fork"):
        return "this system cannot fork"
    number = _count_threads()
    if number is None:
        return "the threads of a process cannot be counted on this system without psutil"
    return "" if number == 1 else f"{number} threads after collecting"


def _count_threads() -> int | None:
    # `threading` does not know threads that a library started, e.g. those of XLA.
    with contextlib.suppress(OSError):
        return sum(1 for _ in os.scandir("/proc/self/task"))
    try:
        import psutil  # a cell may lack it
    except ImportError:
        return None
    return max(int(psutil.Process().num_threads()), threading.active_count())


class ForkServer(RequestLoop):
    """The process that collected a suite: it forks workers and runs no test itself.

    Args:
        config: Configuration of pytest.
        channel: Provides requests.
        worker: Runs in each worker with its channel and its first request.
    """

    def __init__(
        self,
        config: Any,
        channel: Channel,
        worker: Callable[[Channel, dict[str, Any]], None],
    ) -> None:
        # Any: the plugins of pytest set attributes that its types do not declare.
        self._config: Any = config
        self._worker = worker
        self._folder = os.getcwd()  # only passed on to chdir
        self._base: Path | None = None
        with contextlib.suppress(Exception):  # the plugin tmpdir may be disabled
            self._base = self._config._tmp_path_factory.getbasetemp()
        super().__init__(channel.requests, channel.replies, self._become_worker, reuse=1.0)

    def serve(self) -> None:
        """Fork workers as they are needed; returns at the end of the requests, in this process."""
        gc.collect()
        gc.freeze()  # workers neither collect nor copy these objects
        try:
            while self._handle_events():
                pass
        finally:
            self._supervisor.stop()

    def _accept(self, request: dict[str, Any]) -> None:
        _flush()  # a worker inherits the buffers, and would write them a second time
        super()._accept(request)

    def _send(self, header: dict[str, Any], body: bytes = b"") -> None:
        # The supervisor of the session server must not take messages of workers for the session's.
        super()._send({"relay": header}, body)

    def _become_worker(self, request: dict[str, Any], fd: int) -> None:
        """Run tests in the worker."""
        channel, out, err = Channel(take_standard_input(), fd), os.dup(1), os.dup(2)
        restart_capture(self._config, out, err)
        os.chdir(self._folder)
        if self._base is not None:
            own = self._base / f"worker{os.getpid()}"
            own.mkdir(mode=0o700)
            self._config._tmp_path_factory._basetemp = own
        status = 0
        try:
            self._worker(channel, request)
        except BaseException as error:  # pytest ends itself with exceptions, too
            status = 2
            if not isinstance(error, (pytest.Session.Interrupted, pytest.Session.Failed)):
                excinfo = pytest.ExceptionInfo.from_current()
                self._config.notify_exception(excinfo, self._config.option)
        _flush()
        # Without exit handlers: those of the session run once, in the process that collected.
        os._exit(status)


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__):
        if stream is not None:
            with contextlib.suppress(Exception):  # a test may have replaced them
                stream.flush()


def restart_capture(config: Any, out: int, err: int) -> None:
    """Restart capturing in a child: the files of its parent have one offset for all children.

    Args:
        config: Configuration of pytest.
        out: Descriptor that becomes standard output.
        err: Descriptor that becomes standard error.
    """
    manager = config.pluginmanager.getplugin("capturemanager")
    if manager is not None:
        manager.stop_global_capturing()
    os.dup2(out, 1)
    os.dup2(err, 2)
    if manager is not None:
        manager.start_global_capturing()
        manager.suspend_global_capture(in_=False)
    # pytest keeps a copy of standard error for the tracebacks of crashes.
    with contextlib.suppress(Exception):  # the plugin may be disabled, or its key renamed
        from _pytest.faulthandler import fault_handler_stderr_fd_key  # may be missing

        os.dup2(err, config.stash[fault_handler_stderr_fd_key])
    os.close(out)
    os.close(err)
