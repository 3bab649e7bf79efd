"""The screen of a review, as a Textual app: it draws the dialog, reads keys and asks questions."""

from __future__ import annotations

import asyncio
import signal
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Final

from rich.text import Text
from textual.app import App
from textual.binding import Binding
from textual.widgets import Static

from conformance.app.review_dialog import ReviewDialog
from conformance.cli.review_widgets import CSS, PRESSED, Evidence, Keys, Lines, Questions
from conformance.errors import ConformanceError
from conformance.model.outcome import ExitCode
from conformance.report.text import one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from textual.app import ComposeResult
    from textual.screen import ModalScreen

    from conformance.app.review_dialog import TermQuestion
    from conformance.review.outcomes import Outcomes
    from conformance.review.review import Review

_PAGING: Final = {
    "space": "page(1)", "pagedown": "page(1)", "b": "page(-1)", "pageup": "page(-1)",
    "down": "move(1)", "j": "move(1)", "up": "move(-1)", "k": "move(-1)",
}  # fmt: skip

_WIDEST: Final = 1_000
"""Columns to which the first line is filled."""


class ReviewApp(App[ExitCode]):
    """A review by single keys.

    Args:
        review: The review.
        check: Raises if an outcome may not be written.

    Attributes:
        failure: The error that ended it, None if none did.
    """

    CSS = CSS
    ENABLE_COMMAND_PALETTE = False
    # The app handles keys with priority in the order in which they come, so that those typed ahead
    # of a question are its answer.
    BINDINGS: ClassVar = [
        *(Binding(key, action, priority=True) for key, action in _PAGING.items()),
        *(Binding(key, f"press('{name}')", priority=True) for key, name in PRESSED.items()),
        Binding("ctrl+c", "interrupt", priority=True),
        Binding("ctrl+z", "suspend_process", priority=True),
    ]

    def __init__(self, review: Review, check: Callable[[Outcomes], None]) -> None:
        super().__init__(ansi_color=True)
        self.failure: ConformanceError | None = None
        self.dialog = ReviewDialog(review, check, self)
        self._opening: tuple[ModalScreen[Any], Callable[[Any], None]] | None = None
        self._is_over = False

    def compose(self) -> ComposeResult:
        """Yield the group, its evidence, the result of the last key, and the keys."""
        yield Static(id="place")
        yield Static(id="title")
        yield Evidence()
        yield Static(id="message")
        yield Keys(id="keys", classes="keys")

    def on_mount(self) -> None:
        """Draw the first group; a signal to end is like Ctrl-C."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, self.action_interrupt)
        self._draw()

    def on_key(self) -> None:
        """Report a key that is no binding."""
        if not self.screen.is_modal:
            self.dialog.press("")
            self._draw()

    def check_action(self, action: str, _: tuple[object, ...]) -> bool:
        """Say whether keys of the review are handled: not those that answer a question."""
        if isinstance(self.screen, Questions):
            return action not in {"press", "page", "move", "interrupt"}
        if isinstance(self.screen, Lines):
            return action not in {"page", "move"} or self.screen.pages
        return True

    def action_page(self, pages: int) -> None:
        """Scroll by pages."""
        self.screen.query_one(Evidence).page(pages)

    def action_move(self, lines: int) -> None:
        """Scroll by lines."""
        self.screen.query_one(Evidence).move(lines)

    def action_interrupt(self) -> None:
        """End as interrupted."""
        self.exit(ExitCode.INTERRUPTED)

    async def action_press(self, key: str) -> None:
        """Have the dialog handle a key, or the lines in its place."""
        if isinstance(self.screen, Lines):
            self.screen.dismiss(key)
        else:
            await self._call(self.dialog.press, key)

    async def _call(self, function: Callable[..., None], *arguments: object) -> None:
        """Call the dialog in a thread: while it waits for a lock, the screen says so."""
        try:
            await asyncio.to_thread(function, *arguments)
        except ConformanceError as error:
            self.failure = error
            self._is_over = True
        if self._is_over:
            self.exit()
        if self._is_over or not self.screen_stack:  # a signal may have ended it meanwhile
            return
        self._draw()
        if self._opening is not None:
            (screen, answer), self._opening = self._opening, None
            await self.push_screen(screen, partial(self._call, answer))

    def _draw(self) -> None:
        below = self.screen_stack[0]
        texts = {
            "place": self.dialog.place.ljust(_WIDEST),
            "title": one_line(self.dialog.group.title),
            "message": one_line(self.dialog.message),
        }
        for name, text in texts.items():
            below.query_one(f"#{name}", Static).update(Text(text))
        below.query_one(Evidence).show(self.dialog.group.id, self.dialog.lines)

    def draw(self) -> None:
        """Draw while the dialog handles a key."""
        self.call_from_thread(self._draw)

    def ask(
        self,
        questions: Sequence[TermQuestion],
        answer: Callable[[Mapping[str, str] | None], None],
    ) -> None:
        """Ask for lines of text."""
        self._opening = Questions(questions), answer

    def show(
        self, lines: Sequence[Text], keys: str, answer: Callable[[str], None], *, confirm: bool
    ) -> None:
        """Show lines in place of the evidence."""
        self._opening = Lines(lines, keys, confirm=confirm), answer

    def quit(self) -> None:
        """End the review."""
        self._is_over = True
