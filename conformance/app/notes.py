"""Notes on standard error, so that programs can read standard output."""

from __future__ import annotations

import sys


def print_note(text: str) -> None:
    """Print a note on standard error.

    Args:
        text: One line.
    """
    sys.stderr.write(f"conformance: {text}\n")
    sys.stderr.flush()
