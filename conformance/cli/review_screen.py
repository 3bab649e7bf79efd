"""A review in a terminal, by single keys."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from typing import TYPE_CHECKING, Final

import click
from rich.console import Console

from conformance.app.review_data import outcome_lines
from conformance.cli.terminal_keys import Keys
from conformance.errors import UsageError
from conformance.model.outcome import ExitCode
from conformance.report.text import one_line, visible
from conformance.review.browsing import Asks, Browsing
from conformance.review.decisions import REVIEW, Choice
from conformance.review.evidence import proposals
from conformance.review.lines import line
from conformance.review.proposing import Wish
from conformance.review.screen import folded, frame, page_of
from conformance.wording import plural

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rich.text import Text

    from conformance.review.proposing import Declaration
    from conformance.review.session import Session
    from conformance.review.writing import Outcomes

_DEFAULT: Final = (80, 24)
_HOME, _TO_END_OF_LINE, _TO_END = "\x1b[H", "\x1b[K", "\x1b[J"
_SCREEN, _BACK = "\x1b[?1049h", "\x1b[?1049l"


def in_terminal() -> bool:
    """Say whether there is someone to press keys and to see what they come to."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def review_in_terminal(session: Session, check: Callable[[Outcomes], None]) -> int:
    """Let someone decide on what is pending, key by key.

    Args:
        session: The review.
        check: Makes sure that what would be written may be.

    Returns:
        The exit status.
    """
    screen = Screen(session, check)
    interrupted = False
    try:
        with screen.open():
            screen.run()
    except KeyboardInterrupt:
        interrupted = True
    with contextlib.suppress(OSError):  # a terminal that hung up hears nothing more
        for text in _farewell(session):
            click.echo(visible(text))
    if interrupted:
        return ExitCode.INTERRUPTED
    return ExitCode.UNEXPECTED if session.pending else ExitCode.OK


def _farewell(session: Session) -> Iterator[str]:
    if not session.groups:
        yield f"nothing is pending in {session.directory.path}"
        return
    taken = len(session.taken)
    yield f"{len(session.pending)} of {plural(len(session.groups), 'group')} pending"
    if taken:
        word = "decision is" if taken == 1 else "decisions are"
        yield f"{taken} {word} kept in {session.directory.path / REVIEW}"


class Screen:
    """Draws a review and reads keys.

    Args:
        session: The review.
        check: Makes sure that what would be written may be.
    """

    def __init__(self, session: Session, check: Callable[[Outcomes], None]) -> None:
        self._session = session
        self._check = check
        self._browsing = Browsing(session)
        self._keys = Keys(sys.stdin.fileno())
        self._dumb = os.environ.get("TERM", "") in {"", "dumb", "unknown"}
        self._stale = False
        self._question = ""
        self._body: Sequence[Text] | None = None

    @contextlib.contextmanager
    def open(self) -> Iterator[None]:
        """Take the screen; what was on it comes back, whatever happens."""
        before = {}
        with self._keys.opened():
            for number in (signal.SIGWINCH, signal.SIGCONT):
                before[number] = signal.signal(number, self._again)
            self._write("" if self._dumb else _SCREEN)
            try:
                yield
            finally:
                for number, handler in before.items():
                    signal.signal(number, handler)
                with contextlib.suppress(OSError):
                    self._write("" if self._dumb else _BACK)

    def run(self) -> None:
        """Read keys until someone quits, nothing is left, or the terminal is gone."""
        while self._session.groups:
            key = self._key()
            if not key:
                return
            body = self._folded()
            asks = self._browsing.press(key, page_of(self._size()[1]), len(body))
            if asks is Asks.QUIT:
                return
            if asks is Asks.REJECT:
                self._reject()
            elif asks is Asks.DEVIATION:
                self._deviation()
            elif asks is Asks.WRITE:
                self._write_out()

    def _again(self, *_: object) -> None:
        """Draw anew: the terminal has another size, or is ours again."""
        self._keys.take()
        if self._keys.waiting:
            self._draw()
        else:
            self._stale = True

    def _key(self) -> str:
        """Draw, and return the next key; a size that changes meanwhile is drawn for too."""
        self._stale = True
        while self._stale:
            self._stale = False
            self._draw()
        return self._keys.read()

    def _size(self) -> tuple[int, int]:
        try:
            width, height = os.get_terminal_size(sys.stdout.fileno())
        except OSError:
            return _DEFAULT
        # Where no cursor moves, what is typed and drawn goes on below: a line is kept for that.
        return (width or _DEFAULT[0], (height or _DEFAULT[1]) - self._dumb)

    def _folded(self) -> Sequence[Text]:
        width = self._size()[0]
        return self._body if self._body is not None else folded(self._browsing.lines(), width)

    def _draw(self) -> None:
        width, height = self._size()
        texts = frame(self._browsing, self._folded(), width, height, self._question)
        console = Console(force_terminal=not self._dumb, width=width, highlight=False)
        told = []
        for text in texts:
            with console.capture() as capture:
                console.print(text, end="", soft_wrap=True)
            told.append(capture.get())
        if self._dumb:
            self._write("\n".join(told) + "\n")
        else:
            self._write(_HOME + f"{_TO_END_OF_LINE}\r\n".join(told) + _TO_END_OF_LINE + _TO_END)

    def _write(self, text: str) -> None:
        data = text.encode(sys.stdout.encoding or "ascii", "replace")
        sys.stdout.flush()
        while data:
            data = data[os.write(sys.stdout.fileno(), data) :]

    def _ask(self, what: str, default: str = "") -> str | None:
        """Ask for a line of text below the screen; None when it is called off."""
        width, height = self._size()
        shown = f"{what}{f' [{default}]' if default else ''}: "
        start = "\n" if self._dumb else f"\x1b[{height - 1};1H{_TO_END}"
        # What is typed begins on a line of its own where both do not fit.
        label = visible(one_line(shown)) + " "
        gap = "\r\n" if len(label) > width // 2 else ""
        text = self._keys.line(lambda: self._write(f"{start}{label[: width - 1]}{gap}"))
        return text if text is None else text.strip() or default

    def _reject(self) -> None:
        reason = self._ask("why is it rejected")
        if reason is None:
            self._browsing.message = "called off"
        else:
            self._browsing.decide(Choice.REJECT, Wish(reason=reason))

    def _deviation(self) -> None:
        wish = self._wish()
        if wish is None:
            self._browsing.message = "called off"
        else:
            self._browsing.decide(Choice.DEVIATION, wish)

    def _wish(self) -> Wish | None:
        """Ask how a deviation is to be declared; what is only agreed to stays as proposed."""
        _, proposed = proposals(self._browsing.group, self._session.files)
        asked: dict[str, str | None] = {}
        for field, what in _ASKED.items():
            default = _proposed(proposed, field)
            if default is None:
                continue
            text = self._ask(what, default)
            if text is None:
                return None
            asked[field] = None if text == default else "" if text == "-" else text
        reason = self._ask("reason")
        issue = None if reason is None else self._ask("issue, owner/repo#N, or nothing")
        if reason is None or issue is None:
            return None
        return Wish(reason=reason, issue=issue, **asked)

    def _write_out(self) -> None:
        """Show what would be written, ask once, and write it."""
        try:
            done = self._session.outcomes()
            self._check(done)
        except UsageError as error:
            self._browsing.message = str(error)
            return
        width = self._size()[0]
        told = [line(text) for text in outcome_lines(done)]
        self._body = folded(told, width)
        self._browsing.top = 0
        self._question = "write this?  y yes  space page  any other key: no"
        try:
            while True:
                key = self._key()
                if key != " ":
                    break
                self._browsing.press(key, page_of(self._size()[1]), len(self._body))
        finally:
            self._question, self._body = "", None
            self._browsing.top = 0
        if key not in {"y", "Y"}:
            self._browsing.message = "nothing is written"
            return
        self._session.write(os.environ, self._check, self._inform)
        self._browsing.written()
        self._browsing.message = f"written: {one_line(told[-1].text)}"

    def _inform(self, text: str) -> None:
        self._browsing.message = text
        self._draw()


_ASKED: Final = {
    "releases": "releases it is for, - for all",
    "platform": "platform, - for all",
    "match": "pattern in the message, - for any",
}


def _proposed(proposed: Sequence[Declaration], field: str) -> str | None:
    """Return what is proposed for a field, None where there is nothing to be asked."""
    if all(one.deviation is None for one in proposed):
        left = {one.releases for one in proposed}
        return (left.pop() or "") if field == "releases" and len(left) == 1 else None
    found = {getattr(one.deviation, field) for one in proposed if one.deviation is not None}
    return str(found.pop()) if len(found) == 1 else "as proposed for each"
