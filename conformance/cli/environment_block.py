"""The initial environment of this process, as other processes of the same user can read it."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

_STAT: Final = Path("/proc/self/stat")
_ENV_START: Final = 49
"""Index of the address of the block among the fields of `stat`; its end follows (man proc(5))."""
_SET_DUMPABLE: Final = 4
"""Option of prctl(2)."""


def erase_environment_block(keeps: Callable[[str, str], bool]) -> None:
    """Hide variables of this process from `/proc/PID/environ`, and its memory from other processes.

    A job runs as the same user, so it could read in that file every secret that its own
    environment lacks. The kernel shows the block of memory that the process was started with, not
    the present `os.environ`. So the values are erased in that block, after libc has copied them.
    `PR_SET_DUMPABLE` closes `/proc/PID/mem` as well, except to root. Programs that this process
    starts get its variables as before. On systems without `/proc` nothing happens.

    Args:
        keeps: Whether a variable, given its name and value, stays readable.
    """
    try:
        # The second field is the program's name in parentheses, which may contain spaces.
        fields = _STAT.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        start, end = (int(fields[_ENV_START - 2 + i]) for i in range(2))
    except (OSError, ValueError, IndexError):
        return
    # A kernel that hides addresses reports 0; writing there would crash the process.
    if not 0 < start < end:
        return
    for name, value in os.environ.items():
        os.putenv(name, value)  # libc's pointers into the block are replaced by copies
    offset = start
    for entry in ctypes.string_at(start, end - start).split(b"\0"):
        key, equals, content = entry.partition(b"=")
        if equals and not keeps(os.fsdecode(key), os.fsdecode(content)):
            # Overwritten, not removed: the block keeps its length, which the kernel knows.
            ctypes.memset(offset + len(key) + 1, ord("*"), len(content))
        offset += len(entry) + 1
    ctypes.CDLL(None).prctl(_SET_DUMPABLE, 0, 0, 0, 0)
