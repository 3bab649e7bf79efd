"""Reviewing by single keys without cursor movement: a review is written line by line."""

from __future__ import annotations

import contextlib
import os
import select
import sys
import termios
import tty
from typing import TYPE_CHECKING, Final

from rich.console import Console

from conformance.app.review.dialog import QUIT, SHORT_KEYS, ReviewDialog
from conformance.report.text import flatten
from conformance.review.evidence import WrappedLines, make_line

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rich.text import Text

    from conformance.app.review.dialog import TermQuestion
    from conformance.review.outcomes import Outcomes
    from conformance.review.review import Review

_ESCAPE: Final = b"\x1b"
_SOON: Final = 0.05
"""Seconds within which the rest of a sequence that one key sends arrives."""
_KEYS: Final = {
    b"\x1b[C": "n", b"\x1bOC": "n", b"\t": "n", b"\x1b[D": "p", b"\x1bOD": "p", b"h": "?",
    b"": QUIT, b"\x04": QUIT,
}  # fmt: skip


class PlainFrontEnd:
    """Writes a review line by line, without control codes.

    Args:
        review: The review.
        check: Raises if an outcome may not be written.
    """

    def __init__(self, review: Review, check: Callable[[Outcomes], None]) -> None:
        self._dialog = ReviewDialog(review, check, self)
        self._terminal = sys.stdin.fileno()
        self._before = termios.tcgetattr(self._terminal)
        self._is_over = False

    def run(self) -> None:
        """Read keys until the reviewer quits, no group is left, or the terminal is gone."""
        # TCSADRAIN keeps keys that are typed ahead; the default, TCSAFLUSH, drops them.
        tty.setcbreak(self._terminal, termios.TCSADRAIN)
        try:
            while not self._is_over:
                self.draw()
                self._dialog.press(self._read_key())
        finally:
            self._set_line_mode()

    def _set_line_mode(self) -> None:
        """Restore the mode in which the terminal echoes keys and returns whole lines."""
        # The terminal may have hung up.
        with contextlib.suppress(termios.error):
            termios.tcsetattr(self._terminal, termios.TCSADRAIN, self._before)

    def draw(self) -> None:
        """Write the evidence, the group, the result of the last key, and the keys."""
        dialog = self._dialog
        below = (dialog.group.title, dialog.place, dialog.message, SHORT_KEYS)
        self._print([*dialog.lines, make_line(""), *map(make_line, below)])

    @staticmethod
    def _print(lines: Sequence[Text]) -> None:
        console = Console(no_color=True, highlight=False, force_terminal=False, markup=False)
        console.print(WrappedLines(lines))

    def _read_key(self) -> str:
        """Return the next key, without reading further: the rest may be typed for a question."""
        data = os.read(self._terminal, 1)
        # Arrow keys send three bytes; the Escape key sends only the first of them.
        if data == _ESCAPE and select.select([self._terminal], [], [], _SOON)[0]:
            data += os.read(self._terminal, 2)
        return _KEYS.get(data, data.decode("ascii", "replace"))

    def ask(
        self,
        questions: Sequence[TermQuestion],
        answer: Callable[[Mapping[str, str] | None], None],
    ) -> None:
        """Ask for lines of text."""
        answers: dict[str, str] = {}
        self._set_line_mode()
        try:
            for field, text, default in questions:
                shown = flatten(f"{text}{f' [{default}]' * bool(default)}:")
                # `input` needs line mode, in which the terminal echoes and edits the text.
                answers[field] = input(f"{shown} ").strip() or default
        except (KeyboardInterrupt, EOFError):
            answer(None)
        else:
            answer(answers)
        finally:
            tty.setcbreak(self._terminal, termios.TCSADRAIN)

    def show(self, lines: Sequence[Text], keys: str, answer: Callable[[str], None]) -> None:
        """Write lines, and read a key."""
        self._print([*lines, make_line(keys)])
        key = self._read_key()
        # Everything is written at once, so paging has nothing to show.
        while key == " ":
            key = self._read_key()
        answer(key)

    def quit(self) -> None:
        """End the review."""
        self._is_over = True
