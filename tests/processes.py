"""Processes that tests wait for."""

from __future__ import annotations

import time

import psutil


def gone(pid: int, seconds: float = 4) -> bool:
    """Say whether a process ends within a while.

    Args:
        pid: The process.
        seconds: How long it may take.
    """
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            if psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
                return True
        except psutil.NoSuchProcess:
            return True
        time.sleep(0.01)
    return False
