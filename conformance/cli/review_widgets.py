"""Widgets of the review screen: pages of evidence, lines in their place, and questions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rich.text import Text
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Static

from conformance.app.review.dialog import KEYS, QUIT, SHORT_KEYS
from conformance.review.evidence import WrappedLines

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual import events
    from textual.app import ComposeResult


PAGES: Final = {"space": 1, "pagedown": 1, "b": -1, "pageup": -1}
STEPS: Final = {"down": 1, "j": 1, "up": -1, "k": -1}
"""Pages and lines that keys scroll by."""
ALIASES: Final = {
    "right": "n", "tab": "n", "left": "p", "h": "?", "ctrl+d": QUIT,
}  # fmt: skip
"""Keys of the dialog by their aliases."""
CSS: Final = """
#place { height: 1; text-style: reverse; text-wrap: nowrap; }
#title { height: 1; text-style: bold; text-wrap: nowrap; }
#message { height: 2; color: ansi_yellow; }
.keys { height: 1; text-style: bold; text-wrap: nowrap; }
EvidencePane { border-top: ascii ansi_bright_black; border-bottom: ascii ansi_bright_black; }
EvidencePane { scrollbar-size: 0 0; border-subtitle-align: left; }
ModalScreen { background: transparent; align: left bottom; }
Questions VerticalScroll { height: auto; max-height: 100%; background: ansi_default; }
Questions VerticalScroll { border-top: ascii ansi_bright_black; scrollbar-size: 0 0; }
Questions Input { border: none; padding: 0 2; height: 1; }
"""


class EvidencePane(VerticalScroll, can_focus=False):
    """Pages of lines; the border below shows how many more there are.

    Args:
        lines: The lines.
    """

    def __init__(self, lines: Sequence[Text] = ()) -> None:
        super().__init__(Static(WrappedLines(lines)))
        self._title = ""

    def show(self, title: str, lines: Sequence[Text]) -> None:
        """Show other lines, from the first line unless the title is the same."""
        self.query_one(Static).update(WrappedLines(lines))
        if title != self._title:
            self.scroll_home(animate=False)
        # The same group is drawn after each key: its reader must not lose the place.
        self._title = title
        self.call_after_refresh(self.count)

    def page(self, pages: int) -> None:
        """Scroll by pages; the first page follows the last."""
        if pages > 0 and self.scroll_offset.y >= self.max_scroll_y:
            self.scroll_home(animate=False)
        else:
            self.move(pages * self.scrollable_content_region.height)

    def move(self, lines: int) -> None:
        """Scroll by lines."""
        self.scroll_relative(y=lines, animate=False)

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Update the number of lines below after scrolling."""
        # Textual moves the content in this watcher.
        super().watch_scroll_y(old_value, new_value)
        self.count()

    def on_resize(self) -> None:
        """Update the number of lines below for the new size."""
        # The layout, and so the number of lines, is known after the refresh.
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
    """Lines in place of the evidence; a key that does not scroll ends it.

    Args:
        lines: The lines.
        keys: Text in place of the keys.
    """

    def __init__(self, lines: Sequence[Text], keys: str) -> None:
        super().__init__()
        self._lines, self._keys = lines, keys

    def compose(self) -> ComposeResult:
        """Yield the lines, and the keys."""
        yield EvidencePane(self._lines)
        yield Static(Text(self._keys), classes="keys")
