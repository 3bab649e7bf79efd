"""Widgets of the review screen: pages of evidence, lines in their place, and questions."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, ClassVar, Final

from rich.text import Text
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from conformance.app.review_dialog import KEYS, QUIT, SHORT_KEYS
from conformance.report.text import one_line
from conformance.review.lines import WrappedLines

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual import events
    from textual.app import ComposeResult

    from conformance.app.review_dialog import TermQuestion

PRESSED: Final = {
    **{key: key for key in "nparsduw"}, "right": "n", "tab": "n", "left": "p",
    "question_mark": "?", "h": "?", "q": QUIT, "ctrl+d": QUIT, "y": "y",
}  # fmt: skip
"""The key of the dialog, by the one that is pressed."""
CSS: Final = """
#place { height: 1; text-style: reverse; text-wrap: nowrap; }
#title { height: 1; text-style: bold; text-wrap: nowrap; }
#message { height: 2; color: ansi_yellow; }
.keys { height: 1; text-style: bold; text-wrap: nowrap; }
Evidence { border-top: ascii ansi_bright_black; border-bottom: ascii ansi_bright_black; }
Evidence { scrollbar-size: 0 0; border-subtitle-align: left; }
ModalScreen { background: transparent; align: left bottom; }
Questions VerticalScroll { height: auto; max-height: 100%; background: ansi_default; }
Questions VerticalScroll { border-top: ascii ansi_bright_black; scrollbar-size: 0 0; }
Questions Input { border: none; padding: 0 2; height: 1; }
"""


class Evidence(VerticalScroll, can_focus=False):
    """Pages of lines; the border below shows how many more there are.

    Args:
        lines: The lines.
    """

    def __init__(self, lines: Sequence[Text] = ()) -> None:
        super().__init__(Static(WrappedLines(lines)))
        self._title = ""

    def show(self, title: str, lines: Sequence[Text]) -> None:
        """Show other lines: from the first one, unless they have the same title."""
        self.query_one(Static).update(WrappedLines(lines))
        if title != self._title:
            self.scroll_home(animate=False)
        self._title = title
        self.call_after_refresh(self.count)

    def page(self, pages: int) -> None:
        """Scroll by pages; after the last one comes the first."""
        if pages > 0 and self.scroll_offset.y >= self.max_scroll_y:
            self.scroll_home(animate=False)
        else:
            self.move(pages * self.scrollable_content_region.height)

    def move(self, lines: int) -> None:
        """Scroll by lines."""
        self.scroll_relative(y=lines, animate=False)

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Count again."""
        super().watch_scroll_y(old_value, new_value)
        self.count()

    def on_resize(self) -> None:
        """Count again."""
        self.call_after_refresh(self.count)

    def count(self) -> None:
        """Show how many lines are below."""
        more = self.max_scroll_y - self.scroll_offset.y
        self.border_subtitle = f"{more} more lines (space)" if more > 0 else ""


class Keys(Static):
    """The keys, with words where there is room."""

    def on_resize(self, event: events.Resize) -> None:
        """Show as much as fits."""
        self.update(KEYS if len(KEYS) <= event.size.width else SHORT_KEYS)


class Lines(ModalScreen[str]):
    """Lines in place of the evidence; a key that does not page ends it.

    Args:
        lines: The lines.
        keys: Text in place of the keys.
        confirm: Whether paging keys never end it.
    """

    def __init__(self, lines: Sequence[Text], keys: str, *, confirm: bool) -> None:
        super().__init__()
        self._lines, self._keys, self._confirm = lines, keys, confirm

    def compose(self) -> ComposeResult:
        """Yield the lines, and the keys."""
        yield Evidence(self._lines)
        yield Static(Text(self._keys), classes="keys")

    @property
    def pages(self) -> bool:
        """Whether paging keys page."""
        return self._confirm or self.query_one(Evidence).max_scroll_y > 0

    def on_key(self, event: events.Key) -> None:
        """Return a key that is no binding of the app."""
        event.stop()
        if self.is_current:  # one key typed ahead of another has ended it
            self.dismiss(event.character or event.key)


class Questions(ModalScreen["dict[str, str] | None"]):
    """Questions below the evidence, an answer a line; Enter goes to the next, the last one ends.

    Args:
        questions: The questions.
    """

    AUTO_FOCUS = "Input"
    BINDINGS: ClassVar = [
        Binding("enter", "next", priority=True),
        Binding("escape,ctrl+c,ctrl+d", "dismiss(None)", priority=True),
    ]

    def __init__(self, questions: Sequence[TermQuestion]) -> None:
        super().__init__()
        self._questions = questions

    def compose(self) -> ComposeResult:
        """Yield the questions."""
        with VerticalScroll():
            for field, text, default in self._questions:
                yield Static(Text(one_line(f"{text}{f' [{default}]' * bool(default)}:")))
                yield Input(id=field, select_on_focus=False)

    async def action_next(self) -> None:
        """Go to the next question, or return the answers."""
        inputs = list(self.query(Input))
        if isinstance(current := self.focused, Input):
            # Keys that come at once are forwarded to the input; those after Enter are the next's.
            done = asyncio.Event()
            current.call_later(done.set)
            await done.wait()
            if current is not inputs[-1]:
                inputs[inputs.index(current) + 1].focus()
                return
        answers = zip(self._questions, inputs, strict=True)
        self.dismiss({one.field: found.value.strip() or one.default for one, found in answers})
