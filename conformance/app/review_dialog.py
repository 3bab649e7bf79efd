"""The dialog of a review: keys and answers become decisions. Whoever draws it is a `Screen`."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from conformance.app.review_data import outcome_lines
from conformance.errors import UsageError
from conformance.report.text import one_line
from conformance.review.browsing import Asks
from conformance.review.decisions import Choice
from conformance.review.evidence import proposals
from conformance.review.lines import line
from conformance.review.proposing import Wish, agreed_value

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from conformance.review.browsing import Browsing
    from conformance.review.lines import Line
    from conformance.review.session import Session
    from conformance.review.writing import Outcomes

_QUESTIONS: Final = {
    "releases": "releases it is for, - for all",
    "platform": "platform, - for all",
    "match": "pattern in the message, - for any",
}
"""Questions about a deviation, by the field of `Wish` that the answer is for."""


@dataclass(slots=True)
class ReviewView:
    """The content of the screen.

    Attributes:
        browsing: The group, the page, and the message of the last key.
        preview: Lines that are shown instead of the evidence, None for the evidence.
        question: A question in the place of the keys.
    """

    browsing: Browsing
    preview: Sequence[Line] | None = None
    question: str = ""

    def lines(self) -> Sequence[Line]:
        """Return the lines that the pages consist of."""
        return self.browsing.lines() if self.preview is None else self.preview


class Screen(Protocol):
    """Draws a `ReviewView`, and reads keys and lines of text."""

    @property
    def page(self) -> int:
        """Lines of a page."""
        ...

    @property
    def total(self) -> int:
        """Lines of all pages."""
        ...

    def draw(self) -> None:
        """Draw the view."""
        ...

    def read_key(self) -> str:
        """Draw the view, and return the next key; empty when there is no terminal left."""
        ...

    def ask(self, what: str, default: str = "") -> str | None:
        """Ask for a line of text; return None if the reviewer cancels."""
        ...


class ReviewDialog:
    """A review by single keys.

    Args:
        session: The review.
        check: Raises if an outcome may not be written.
        view: The content of the screen.
        screen: Draws it.
    """

    def __init__(
        self,
        session: Session,
        check: Callable[[Outcomes], None],
        view: ReviewView,
        screen: Screen,
    ) -> None:
        self._session = session
        self._check = check
        self._view = view
        self._browsing = view.browsing
        self._screen = screen

    def run(self) -> None:
        """Read keys until the reviewer quits, no group is left, or the terminal is gone."""
        while self._session.groups:
            key = self._screen.read_key()
            if not key:
                return
            match self._press(key):
                case Asks.QUIT:
                    return
                case Asks.REJECT:
                    reason = self._screen.ask("why is it rejected")
                    self._decide(Choice.REJECT, None if reason is None else Wish(reason=reason))
                case Asks.DEVIATION:
                    self._decide(Choice.DEVIATION, self._ask_wish())
                case Asks.WRITE:
                    self._write()
                case Asks.NOTHING:
                    pass

    def _press(self, key: str) -> Asks:
        return self._browsing.press(key, self._screen.page, self._screen.total)

    def _decide(self, choice: Choice, wish: Wish | None) -> None:
        if wish is None:
            self._browsing.message = "called off"
        else:
            self._browsing.decide(choice, wish)

    def _ask_wish(self) -> Wish | None:
        """Ask how a deviation is declared; an answer that is the default stays as proposed."""
        _, proposed = proposals(self._browsing.group, self._session.files)
        answers: dict[str, str | None] = {}
        for field, what in _QUESTIONS.items():
            default = agreed_value(proposed, field)
            if default is None:
                continue
            text = self._screen.ask(what, default)
            if text is None:
                return None
            answers[field] = None if text == default else "" if text == "-" else text
        reason = self._screen.ask("reason")
        issue = None if reason is None else self._screen.ask("issue, owner/repo#N, or nothing")
        if reason is None or issue is None:
            return None
        return Wish(reason=reason, issue=issue, **answers)

    def _write(self) -> None:
        """Show what would be written, ask once, and write it."""
        try:
            outcomes = self._session.outcomes()
            self._check(outcomes)
        except UsageError as error:
            self._browsing.message = str(error)
            return
        preview = [line(text) for text in outcome_lines(outcomes)]
        if not self._confirm(preview):
            self._browsing.message = "nothing is written"
            return
        self._session.write(os.environ, self._check, self._inform)
        self._browsing.written()
        self._browsing.message = f"written: {one_line(preview[-1].text)}"

    def _confirm(self, preview: Sequence[Line]) -> bool:
        self._view.preview = preview
        self._view.question = "write this?  y yes  space page  any other key: no"
        self._browsing.top = 0
        try:
            while (key := self._screen.read_key()) == " ":
                self._press(key)
        finally:
            self._view.preview, self._view.question = None, ""
            self._browsing.top = 0
        return key in {"y", "Y"}

    def _inform(self, text: str) -> None:
        self._browsing.message = text
        self._screen.draw()
