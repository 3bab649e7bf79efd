"""Exceptions as a process printed them: read back from its standard error. Pure."""

from __future__ import annotations

import re
from typing import Final

_TRACEBACK: Final = "Traceback (most recent call last):"
_RAISED: Final = re.compile(r"^(?P<type>[A-Za-z_][\w.]*)(?:: (?P<message>.*))?$", re.MULTILINE)


def find_exception(stderr: str) -> tuple[str, str] | None:
    """Return the exception whose traceback a process printed last.

    Args:
        stderr: Standard error of the process.

    Returns:
        Type, with its module as Python prints it, and message; None without a traceback.
    """
    if _TRACEBACK not in stderr:
        return None
    # Frames are indented, as lines of the message may be, except its first line.
    # The last traceback: chained exceptions and logged ones come before it.
    last = stderr.rpartition(_TRACEBACK)[2]
    found = _RAISED.search(last)
    if found is None:
        return None
    message = "" if found["message"] is None else last[found.start("message") :].strip()
    return found["type"], message
