"""Upstream threads and commits, by which cases and changes name their sources."""

from __future__ import annotations

import re
from typing import Final

_COMMIT: Final = re.compile(r"([\w.-]+/[\w.-]+)@([0-9a-f]{7,40})")


def find_thread_url(thread: str) -> str:
    """Return the address of an upstream thread or commit, empty for any other text.

    Args:
        thread: `owner/repo#N`, `owner/repo@HASH`, or an address.
    """
    repository, sign, number = thread.partition("#")
    if sign and number.isdigit() and repository.count("/") == 1:
        # The number may be of a pull request: GitHub redirects to it from the address.
        return f"https://github.com/{repository}/issues/{number}"
    commit = _COMMIT.fullmatch(thread)
    if commit is not None:
        return f"https://github.com/{commit[1]}/commit/{commit[2]}"
    # A declared thread may be any text: no other scheme than https becomes a link.
    return thread if thread.startswith("https://") else ""
