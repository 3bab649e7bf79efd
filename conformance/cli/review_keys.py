"""Reviewing by single keys: on a Textual screen, or line by line where no cursor moves."""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
from typing import TYPE_CHECKING, Any, Final

import click
from rich.console import Console

from conformance.app.review_data import pending_lines
from conformance.app.review_dialog import QUIT, SHORT_KEYS, ReviewDialog
from conformance.model.outcome import ExitCode
from conformance.report.text import one_line, visible
from conformance.review.lines import WrappedLines, line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from rich.text import Text

    from conformance.app.review_dialog import TermQuestion
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
    with contextlib.suppress(OSError):  # the terminal may have hung up
        for text in pending_lines(review):
            click.echo(visible(text))
    if status is not None:
        return status
    return ExitCode.UNEXPECTED if review.pending else ExitCode.OK


def _open_screen(review: Review, check: Callable[[Outcomes], None]) -> ExitCode | None:
    """Open the screen until the reviewer quits; return the status if it failed or was interrupted.

    Raises:
        ConformanceError: If the disk refuses.
    """
    module: Any = importlib.import_module(SCREEN)
    app: ReviewApp = module.ReviewApp(review, check)
    status = app.run(mouse=False)  # so that the terminal's own selection works
    if app.failure is not None:
        raise app.failure
    return ExitCode.INTERNAL if app.return_code else status


def _is_capable() -> bool:
    """Return whether the terminal moves its cursor and understands what Textual writes."""
    is_dumb = os.environ.get("TERM", "") in {"", "dumb", "unknown"}
    # Textual writes UTF-8, to standard error.
    is_utf8 = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    return is_utf8 and not is_dumb and sys.stderr.isatty()


class PlainFrontEnd:
    """Writes a review line by line, without control codes.

    Args:
        review: The review.
        check: Raises if an outcome may not be written.
    """

    def __init__(self, review: Review, check: Callable[[Outcomes], None]) -> None:
        self._dialog = ReviewDialog(review, check, self)
        self._keys = self._read_keys()
        self._is_over = False

    def run(self) -> None:
        """Read keys until the reviewer quits, no group is left, or the terminal is gone."""
        while not self._is_over:
            self.draw()
            self._dialog.press(next(self._keys, QUIT))

    def draw(self) -> None:
        """Write the evidence, the group, the result of the last key, and the keys."""
        dialog = self._dialog
        below = (dialog.group.title, dialog.place, dialog.message, SHORT_KEYS)
        self._print([*dialog.lines, line(""), *map(line, below)])

    @staticmethod
    def _print(lines: Sequence[Text]) -> None:
        console = Console(no_color=True, highlight=False, force_terminal=False, markup=False)
        console.print(WrappedLines(lines))

    @staticmethod
    def _read_keys() -> Iterator[str]:
        """Yield keys; several may be typed ahead. Ctrl-D ends them."""
        with contextlib.suppress(EOFError, OSError):
            while True:
                yield from click.getchar().partition("\x04")[0]

    def ask(
        self,
        questions: Sequence[TermQuestion],
        answer: Callable[[Mapping[str, str] | None], None],
    ) -> None:
        """Ask for lines of text."""
        answers: dict[str, str] = {}
        try:
            for field, text, default in questions:
                shown = one_line(f"{text}{f' [{default}]' * bool(default)}:")
                answers[field] = input(f"{shown} ").strip() or default
        except (KeyboardInterrupt, EOFError):
            answer(None)
        else:
            answer(answers)

    def show(
        self, lines: Sequence[Text], keys: str, answer: Callable[[str], None], *, confirm: bool
    ) -> None:
        """Write lines, and read a key."""
        self._print([*lines, line(keys)])
        key = next(self._keys, QUIT)
        while confirm and key == " ":
            key = next(self._keys, QUIT)
        answer(key)

    def quit(self) -> None:
        """End the review."""
        self._is_over = True
