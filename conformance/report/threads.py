"""Addresses of upstream threads and commits."""

from __future__ import annotations

import re
from typing import Final

_COMMIT: Final = re.compile(r"([\w.-]+/[\w.-]+)@([0-9a-f]{7,40})")


def address_of(thread: str) -> str:
    """Return the address of an upstream thread or commit, empty for what is none.

    Args:
        thread: `owner/repo#N`, `owner/repo@HASH`, or an address.
    """
    repository, sign, number = thread.partition("#")
    if sign and number.isdigit() and repository.count("/") == 1:
        return f"https://github.com/{repository}/issues/{number}"
    commit = _COMMIT.fullmatch(thread)
    if commit is not None:
        return f"https://github.com/{commit[1]}/commit/{commit[2]}"
    return thread if thread.startswith("https://") else ""
