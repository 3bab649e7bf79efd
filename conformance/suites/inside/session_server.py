"""The server of one session of pytest: starts it, watches it, and passes requests on to it.

It is a separate process, outside of pytest. However a test ends the session, the server reports
the end, and ends every process that the session started.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import re
import shutil
import sys
import time
from pathlib import Path
from typing import Any

from conformance.worker.job_process import POLL, SCRATCH
from conformance.worker.request_loop import RequestLoop

SOON = 10.0
"""Seconds in which a session must end after its last test, before it is killed."""
LOST = "lost"
"""Reason of the end of a test whose session ended before it."""


class SessionServer(RequestLoop):
    """Serves the session of the first request, then requests for its tests.

    A session that forks workers is a fork server itself: requests are passed on to it, and its
    reports about its workers are relayed.

    Args:
        replies: Descriptor that frames are written to; requests come on standard input.
        entry: Script that starts a session.
    """

    def __init__(self, replies: int, entry: str) -> None:
        super().__init__(0, replies, self._become_session, reuse=1.0)
        self._entry = entry
        self._is_started = self._forks = False
        self._relayed: set[str] = set()

    def serve(self) -> None:
        """Say hello, then serve requests until the orchestrator closes the channel."""
        self._send({"kind": "hello", "versions": find_versions()})
        try:
            while self._handle_events():
                pass
            self._dismiss()
        finally:
            self._supervisor.stop()
            shutil.rmtree(os.environ[SCRATCH], ignore_errors=True)  # the orchestrator may be gone

    def _dismiss(self) -> None:
        """Let an idle session end normally, so that pytest tears down its fixtures."""
        # A closed descriptor is always readable: waiting for the session would spin.
        self._selector.unregister(self._requests)
        if self._relayed or (self._supervisor.busy and not self._forks):
            return
        for child in self._supervisor.children:
            child.close_input()
        end = time.monotonic() + SOON
        while self._supervisor.children and time.monotonic() < end:
            self._handle_events(POLL)

    def _accept(self, request: dict[str, Any]) -> None:
        if not self._is_started:
            self._is_started = True
            self._start(request, "session")
        # The session ended after this request was sent: the pool starts another for the test.
        elif not self._supervisor.children:
            self._lose(request["id"])
        elif self._forks:
            self._relayed.add(request["id"])
            self._supervisor.children[0].send(request)
        else:
            self._start(request, "session")

    def _route(self, header: dict[str, Any], body: bytes) -> None:
        header = header.get("relay", header)
        self._send(header, body)
        if header.get("ready") and header["ready"]["forks"]:
            self._forks = True
            for child in self._supervisor.children:
                child.lift_limits()
        if header["kind"] == "done":
            self._relayed.discard(header["job"])
            if not self._supervisor.children:
                for job in self._relayed:
                    self._lose(job)
                self._relayed.clear()

    def _lose(self, job: str) -> None:
        self._send({"kind": "done", "job": job, "ended": LOST})

    def _become_session(self, request: dict[str, Any], fd: int) -> None:
        """Replace the child by a fresh interpreter that runs pytest."""
        scratch, order = Path.cwd(), request["session"]
        # `--lf`, and tests that use the cache, would depend on earlier sessions.
        order["arguments"] += ["-o", f"cache_dir={scratch / 'cache'}"]
        file = scratch / "order.json"
        file.write_text(json.dumps(order))
        # Otherwise execv would close it.
        os.set_inheritable(fd, True)
        os.chdir(order["folder"])
        command = [sys.executable, "-s", self._entry, "session", str(fd), str(file)]
        os.execv(sys.executable, command)  # no shell is wanted


def find_versions() -> dict[str, str]:
    """Return the version of every package of this interpreter, by normalised name."""
    versions: dict[str, str] = {}
    for found in importlib.metadata.distributions():
        name = re.sub(r"[-_.]+", "-", found.metadata["Name"] or "").lower()
        versions.setdefault(name, found.version)  # the first one on the path is imported
    return versions
