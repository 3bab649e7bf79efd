"""The screen of a review, as a Textual app: it draws the dialog, reads keys and asks questions."""

from __future__ import annotations

import asyncio
import signal
from functools import partial
from typing import TYPE_CHECKING, Any

from rich.text import Text
from textual import events
from textual.app import App
from textual.widgets import Static

from conformance.app.review.dialog import ReviewDialog
from conformance.cli.review_questions import Questions
from conformance.cli.review_widgets import ALIASES, CSS, PAGES, STEPS, EvidencePane, Keys, Lines
from conformance.errors import ConformanceError
from conformance.model.outcome import ExitCode
from conformance.report.text import flatten

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from textual.app import ComposeResult
    from textual.screen import ModalScreen

    from conformance.app.review.dialog import TermQuestion
    from conformance.review.outcomes import Outcomes
    from conformance.review.review import Review


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
        yield EvidencePane()
        yield Static(id="message")
        yield Keys(id="keys", classes="keys")

    def on_mount(self) -> None:
        """Draw the first group; signals to end are handled like Ctrl-C."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, self.interrupt)
        self._draw()

    async def on_event(self, event: events.Event) -> None:
        """Handle keys one after the other, except those that answer questions.

        Each widget handles keys in its own task: of several keys that arrive together, by paste or
        over a slow connection, a later one could overtake a key that opens a question.
        """
        if isinstance(event, events.Key) and not event.is_forwarded and not self._is_asking:
            await self._handle_key(event)
        else:
            await super().on_event(event)

    @property
    def _is_asking(self) -> bool:
        return isinstance(self.screen, Questions)

    async def _handle_key(self, event: events.Key) -> None:
        key = ALIASES.get(event.key, event.character or "")
        pane = self.screen.query_one(EvidencePane)
        if event.key in PAGES:
            pane.page(PAGES[event.key])
        elif event.key in STEPS:
            pane.move(STEPS[event.key])
        elif event.key == "ctrl+c":
            self.interrupt()
        elif event.key == "ctrl+z":
            self.action_suspend_process()
        elif isinstance(self.screen, Lines):
            self.screen.dismiss(key)
        else:
            await self._call(self.dialog.press, key)

    def interrupt(self) -> None:
        """End as interrupted."""
        self.exit(ExitCode.INTERRUPTED)

    async def _call(self, function: Callable[..., None], *arguments: object) -> None:
        """Call the dialog in a thread, so that the screen stays alive while it waits for a lock."""
        try:
            await asyncio.to_thread(function, *arguments)
        except ConformanceError as error:
            self.failure = error
            self._is_over = True
        if self._is_over:
            self.exit()
        # A signal may have ended the app in the meantime.
        if self._is_over or not self.screen_stack:
            return
        self._draw()
        if self._opening is not None:
            (screen, answer), self._opening = self._opening, None
            await self.push_screen(screen, partial(self._call, answer))

    def _draw(self) -> None:
        below = self.screen_stack[0]
        texts = {
            "place": self.dialog.place.ljust(1_000),
            "title": flatten(self.dialog.group.title),
            "message": flatten(self.dialog.message),
        }
        for name, text in texts.items():
            below.query_one(f"#{name}", Static).update(Text(text))
        below.query_one(EvidencePane).show(self.dialog.group.id, self.dialog.lines)

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

    def show(self, lines: Sequence[Text], keys: str, answer: Callable[[str], None]) -> None:
        """Show lines in place of the evidence."""
        self._opening = Lines(lines, keys), answer

    def quit(self) -> None:
        """End the review."""
        self._is_over = True
