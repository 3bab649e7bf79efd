"""Waiting for processes."""

from __future__ import annotations

import time

import psutil


def ends_within(pid: int, seconds: float = 4) -> bool:
    """Say whether a process ends within some seconds; a zombie has ended.

    Args:
        pid: Id of the process.
        seconds: Time to wait.
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
