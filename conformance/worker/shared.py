"""Jobs that share a process, one after another.

A job that is compiled only leaves nothing on a device, and to load a compiler for an accelerator
costs ten times what it takes to compile a small program. So the compile-only jobs of a cell with
the same flags share a process. jax's caches are cleared between them; a process that a job has
changed is not used again.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from typing import Any

from conformance.worker import frames
from conformance.worker.job import configure, run_job, set_flags
from conformance.worker.processes import take_standard_input
from conformance.worker.scout import settings

MOST_JOBS = 100
"""Jobs of one process: what leaks, leaks no further."""


def share_key(request: dict[str, Any]) -> str:
    """Return what jobs must have in common to share a process; empty for a job that runs alone.

    Args:
        request: The job.
    """
    if not request["cell"]["topology"] or request.get("alone"):
        return ""
    return json.dumps([request["xla_flags"], request["config"], request["x64"]], sort_keys=True)


def run_jobs(first: dict[str, Any], fd: int) -> None:
    """Run jobs until one has changed the process, or it has run enough.

    `{"idle": True}` says that a job has ended and the next may come, on standard input.

    Args:
        first: The first job.
        fd: Descriptor the jobs' frames go to.
    """
    requests = take_standard_input()
    folder = os.getcwd()  # noqa: PTH109 - to go back to, whatever it is
    before = _configured(first)
    decoder = frames.Decoder()
    request: dict[str, Any] | None = first
    for number in range(MOST_JOBS):
        if request is None:
            return
        run_job(request, fd)
        if number + 1 == MOST_JOBS or settings(before) != before:
            return
        _forget(folder)
        frames.write(fd, {"idle": True})
        request = _next(requests, decoder)


def _configured(request: dict[str, Any]) -> dict[str, Any]:
    """Return the settings under which jobs run in this process."""
    set_flags(request)
    with contextlib.suppress(Exception):  # the job itself will say what is wrong
        configure(request)
    return settings()


def _next(requests: int, decoder: frames.Decoder) -> dict[str, Any] | None:
    """Return the next job, None when no more can come."""
    while data := os.read(requests, 1 << 18):
        for frame in decoder.feed(data):
            return frame.header
    return None


def _forget(folder: str) -> None:
    """Make the process what it was before the last job."""
    import jax  # noqa: PLC0415 - only the process of a job has jax

    sys.stdout.flush()
    sys.stderr.flush()
    os.chdir(folder)
    jax.clear_caches()
