"""Notes on standard error, for what a program that reads standard output must not get."""

from __future__ import annotations

import sys


def print_note(text: str) -> None:
    """Print a note on standard error.

    Args:
        text: One line.
    """
    sys.stderr.write(f"conformance: {text}\n")
    sys.stderr.flush()
