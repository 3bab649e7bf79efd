"""Keeping credentials out of what is printed."""

from __future__ import annotations

import re

_USER_INFO = re.compile(r"(?<=://)[^/\s@'\"]+@")


def masked(text: str) -> str:
    """Return a text with the user names and passwords of its URLs masked.

    Args:
        text: Any text, e.g. the error output of a program.

    Returns:
        The text with `://user:password@` as `://***@`.
    """
    return _USER_INFO.sub("***@", text)
