"""The request loop of fork servers: each request runs in a child, whose frames are sent back."""

from __future__ import annotations

import os
import selectors
import signal
from typing import TYPE_CHECKING, Any

from conformance.worker import frames
from conformance.worker.job_process import POLL, JobProcess
from conformance.worker.processes import PR_SET_CHILD_SUBREAPER, prctl
from conformance.worker.supervisor import REUSE, Supervisor

if TYPE_CHECKING:
    from conformance.worker.job_process import Main


class RequestLoop:
    """The common part of the fork servers of cases and of suites.

    Args:
        requests: Descriptor from which requests are read.
        replies: Descriptor to which frames are written.
        main: Runs in a child with the request and the descriptor for its frames.
        reuse: See `Supervisor`.
    """

    def __init__(self, requests: int, replies: int, main: Main, *, reuse: float = REUSE) -> None:
        self._requests = requests
        self._replies = replies
        self._selector = selectors.DefaultSelector()
        self._decoder = frames.Decoder()
        # A child that ends wakes the selector. A handler must be installed for that: SIGCHLD is
        # ignored by default, and then nothing is written to the wake-up descriptor.
        wake_read, wake_write = os.pipe()
        for fd in (wake_read, wake_write):
            os.set_blocking(fd, False)
        signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        self._wake = wake_read
        close = (requests, replies, wake_read, wake_write, self._selector.fileno())
        self._supervisor = Supervisor(self._selector, main, self._route, close, reuse=reuse)
        self._selector.register(requests, selectors.EVENT_READ, None)
        self._selector.register(wake_read, selectors.EVENT_READ, None)
        # Processes that jobs leave behind become children of this one, which can kill them.
        prctl(PR_SET_CHILD_SUBREAPER, 1)

    def _handle_events(self, wait: float | None = None) -> bool:
        """Handle the events that are ready; return False at the end of the requests.

        Args:
            wait: Seconds to wait for an event if no child is busy, None for no limit.
        """
        # Without a running job there is no limit to check, and the server sleeps until a request.
        for key, _ in self._selector.select(POLL if self._supervisor.busy else wait):
            if key.fd == self._requests:
                data = os.read(self._requests, 1 << 18)
                if not data:
                    return False
                for frame in self._decoder.feed(data):
                    self._accept(frame.header)
            elif key.fd == self._wake:
                os.read(self._wake, 4096)
            elif isinstance(key.data, JobProcess):
                self._supervisor.pump(key.data, key.fd)
        self._supervisor.watch()
        return True

    def _accept(self, request: dict[str, Any]) -> None:
        """Accept a request."""
        self._start(request, request["share"])

    def _start(self, request: dict[str, Any], share: str) -> None:
        """Run a request in a child: see `Supervisor.start`."""
        try:
            self._supervisor.start(request, share)
        except OSError as error:  # the host has no process, descriptor or disk left
            self._route(
                {"kind": "done", "job": request["id"], "ended": "infra", "stderr": str(error)}, b""
            )

    def _route(self, header: dict[str, Any], body: bytes) -> None:
        """Route a frame of a child."""
        self._send(header, body)

    def _send(self, header: dict[str, Any], body: bytes = b"") -> None:
        frames.write(self._replies, header, body)
