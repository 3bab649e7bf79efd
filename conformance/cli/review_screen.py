"""A review in a terminal: drawing the screen, reading keys and lines of text."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from typing import TYPE_CHECKING, Final

import click

from conformance.app.review_data import pending_lines
from conformance.app.review_dialog import ReviewDialog, ReviewView
from conformance.cli.terminal_keys import Keys
from conformance.model.outcome import ExitCode
from conformance.report.text import one_line, visible
from conformance.review.browsing import Browsing
from conformance.review.screen import TO_END, encode_frame, folded, frame, page_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from conformance.review.session import Session
    from conformance.review.writing import Outcomes

_DEFAULT: Final = (80, 24)
_SCREEN, _BACK = "\x1b[?1049h", "\x1b[?1049l"


def in_terminal() -> bool:
    """Return whether a person can press keys and see the screen."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def review_in_terminal(session: Session, check: Callable[[Outcomes], None]) -> ExitCode:
    """Have a person decide on the pending groups, key by key.

    Args:
        session: The review.
        check: Raises if an outcome may not be written.

    Returns:
        The exit status.
    """
    view = ReviewView(Browsing(session))
    screen = ReviewScreen(view)
    interrupted = False
    try:
        with screen.open():
            ReviewDialog(session, check, view, screen).run()
    except KeyboardInterrupt:
        interrupted = True
    with contextlib.suppress(OSError):  # a terminal that hung up hears nothing more
        for text in pending_lines(session):
            click.echo(visible(text))
    if interrupted:
        return ExitCode.INTERRUPTED
    return ExitCode.UNEXPECTED if session.pending else ExitCode.OK


class ReviewScreen:
    """Draws a review in a terminal, and reads keys.

    Args:
        view: The content of the screen.
    """

    def __init__(self, view: ReviewView) -> None:
        self._view = view
        self._keys = Keys(sys.stdin.fileno())
        self._dumb = os.environ.get("TERM", "") in {"", "dumb", "unknown"}
        self._stale = False

    @contextlib.contextmanager
    def open(self) -> Iterator[None]:
        """Take the screen; its former content comes back, whatever happens."""
        before = {}
        with self._keys.opened():
            for number in (signal.SIGWINCH, signal.SIGCONT):
                before[number] = signal.signal(number, self._redraw)
            self._write("" if self._dumb else _SCREEN)
            try:
                yield
            finally:
                for number, handler in before.items():
                    signal.signal(number, handler)
                with contextlib.suppress(OSError):
                    self._write("" if self._dumb else _BACK)

    def _redraw(self, *_: object) -> None:
        """Draw again: the terminal has another size, or belongs to this process again."""
        self._keys.take()
        if self._keys.waiting:
            self.draw()
        else:
            self._stale = True

    def read_key(self) -> str:
        """Draw the view, and return the next key; empty when there is no terminal left."""
        self._stale = True
        while self._stale:  # the size may change while it is drawn
            self._stale = False
            self.draw()
        return self._keys.read()

    @property
    def page(self) -> int:
        """Lines of a page."""
        return page_of(self._size()[1])

    @property
    def total(self) -> int:
        """Lines of all pages."""
        return len(folded(self._view.lines(), self._size()[0]))

    def _size(self) -> tuple[int, int]:
        try:
            width, height = os.get_terminal_size(sys.stdout.fileno())
        except OSError:
            return _DEFAULT
        # Where no cursor moves, typed and drawn lines scroll: a line is kept for that.
        return (width or _DEFAULT[0], (height or _DEFAULT[1]) - self._dumb)

    def draw(self) -> None:
        """Draw the view."""
        width, height = self._size()
        view = self._view
        texts = frame(view.browsing, folded(view.lines(), width), width, height, view.question)
        self._write(encode_frame(texts, width, dumb=self._dumb))

    def _write(self, text: str) -> None:
        data = text.encode(sys.stdout.encoding or "ascii", "replace")
        sys.stdout.flush()
        while data:
            data = data[os.write(sys.stdout.fileno(), data) :]

    def ask(self, what: str, default: str = "") -> str | None:
        """Ask for a line of text below the screen; return None if the reviewer cancels."""
        width, height = self._size()
        shown = f"{what}{f' [{default}]' if default else ''}: "
        start = "\n" if self._dumb else f"\x1b[{height - 1};1H{TO_END}"
        # The answer begins on a line of its own where both do not fit.
        label = visible(one_line(shown)) + " "
        gap = "\r\n" if len(label) > width // 2 else ""
        text = self._keys.line(lambda: self._write(f"{start}{label[: width - 1]}{gap}"))
        return text if text is None else text.strip() or default
