"""Reviewing by single keys: on a Textual screen, or line by line where no cursor moves."""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
from typing import TYPE_CHECKING, Any, Final

import click

from conformance.app.review.workflow import render_pending
from conformance.cli.review_plain import PlainFrontEnd
from conformance.model.outcome import ExitCode
from conformance.report.text import sanitize

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.cli.review_screen import ReviewApp
    from conformance.review.outcomes import Outcomes
    from conformance.review.review import Review

SCREEN: Final = "conformance.cli.review_screen"
"""Imported only where it opens: Textual takes a third of a second to import."""


def in_terminal() -> bool:
    """Return whether a person can press keys and see the screen."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def review_by_keys(review: Review, check: Callable[[Outcomes], None]) -> ExitCode:
    """Have a person decide on the pending groups, key by key.

    Args:
        review: The review.
        check: Raises if an outcome may not be written.

    Returns:
        The exit status.
    """
    status: ExitCode | None = None
    try:
        if _is_capable():
            status = _open_screen(review, check)
        else:
            PlainFrontEnd(review, check).run()
    except KeyboardInterrupt:
        status = ExitCode.INTERRUPTED
    # The terminal may have hung up.
    with contextlib.suppress(OSError):
        for text in render_pending(review):
            click.echo(sanitize(text))
    if status is not None:
        return status
    return ExitCode.UNEXPECTED if review.pending else ExitCode.OK


def _open_screen(review: Review, check: Callable[[Outcomes], None]) -> ExitCode | None:
    """Open the screen until the reviewer quits; return the status if it failed or was interrupted.

    Raises:
        ConformanceError: If the disk refuses.
    """
    # Textual prefers these variables to the size of the terminal.
    for name in ("COLUMNS", "LINES"):
        os.environ.pop(name, None)
    module: Any = importlib.import_module(SCREEN)
    app: ReviewApp = module.ReviewApp(review, check)
    # Without the mouse, the terminal can still select and copy text.
    status = app.run(mouse=False)
    # Raised after the screen is closed, so that its message stays visible.
    if app.failure is not None:
        raise app.failure
    return ExitCode.INTERNAL if app.return_code else status


def _is_capable() -> bool:
    """Return whether the terminal moves its cursor and understands what Textual writes."""
    is_dumb = os.environ.get("TERM", "") in {"", "dumb", "unknown"}
    # Textual writes UTF-8, to standard error.
    is_utf8 = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    return is_utf8 and not is_dumb and sys.stderr.isatty()
