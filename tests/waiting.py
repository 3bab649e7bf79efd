"""Waiting for what a process does, however busy the host is."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

PATIENCE: Final = 120.0
"""Seconds within which a command answers."""


def wait_for(condition: Callable[[], object]) -> None:
    """Wait until a condition holds, such as that a file is there."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, f"not within {PATIENCE:.0f} s"
        time.sleep(0.02)
