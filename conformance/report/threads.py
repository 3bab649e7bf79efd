"""Where upstream threads are."""

from __future__ import annotations


def address_of(thread: str) -> str:
    """Return the address of an upstream thread, empty for what is none.

    Args:
        thread: `owner/repo#N`, or an address.
    """
    repository, sign, number = thread.partition("#")
    if sign and number.isdigit() and repository.count("/") == 1:
        return f"https://github.com/{repository}/issues/{number}"
    return thread if thread.startswith("https://") else ""
