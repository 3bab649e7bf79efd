"""The step that a command is at: a spinner in a terminal, a line every few seconds elsewhere."""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rich.console import Console

INTERVAL: Final = 2.0
"""Seconds between two lines where there is no terminal."""


@contextmanager
def live_status(console: Console) -> Iterator[Callable[[str], None]]:
    """Show what a command does until the block ends.

    Args:
        console: Where to.

    Yields:
        A function to call with a line for each step.
    """
    if console.is_terminal:
        with console.status("", spinner="line") as status:
            yield status.update
        return
    due = 0.0

    def print_line(text: str) -> None:
        nonlocal due
        if time.monotonic() >= due:
            console.print(text, soft_wrap=True)
            due = time.monotonic() + INTERVAL

    yield print_line
