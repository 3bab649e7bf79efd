"""What the terminal shows of a review, as lines of a width. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rich.console import Console
from rich.text import Text

from conformance.report.text import one_line
from conformance.review.browsing import KEYS, SHORT_KEYS
from conformance.review.lines import Line, Tone

if TYPE_CHECKING:
    from collections.abc import Sequence

    from conformance.review.browsing import Browsing

STYLES: Final = {
    Tone.HEAD: "bold",
    Tone.PLAIN: "",
    Tone.QUIET: "bright_black",
    Tone.BEFORE: "red",
    Tone.AFTER: "green",
    Tone.WARNING: "yellow",
}
HANG: Final = 2
"""Columns by which a line that goes on is set in."""
LEAST_WIDTH: Final = 20
TO_END: Final = "\x1b[J"
"""Control sequence that erases from the cursor to the end of the screen."""
_HOME: Final = "\x1b[H"
_TO_END_OF_LINE: Final = "\x1b[K"
_ABOVE: Final = 3
_MESSAGE: Final = 2
_BELOW: Final = 2 + _MESSAGE


def folded(lines: Sequence[Line], width: int) -> list[Text]:
    """Return lines folded to a width, what goes on set in further than it began.

    Args:
        lines: The lines.
        width: Columns there are.
    """
    width = max(width, LEAST_WIDTH)
    console = Console(width=width)
    told: list[Text] = []
    for text, tone in lines:
        body = text.lstrip(" ")
        indent = min(len(text) - len(body), width // 2)
        style = STYLES[tone]
        first = Text(body, style=style).wrap(console, width - indent, overflow="fold")
        told.append(Text(" " * indent) + (first[0] if first else Text()))
        if len(first) > 1:
            rest = body[len(first[0].plain) :].lstrip()
            hang = indent + HANG
            parts = Text(rest, style=style).wrap(console, width - hang, overflow="fold")
            told += [Text(" " * hang) + part for part in parts]
    for one in told:
        one.rstrip()
    return told


def page_of(height: int) -> int:
    """Return how many lines of evidence a screen of a height has."""
    return max(1, height - _ABOVE - _BELOW)


def frame(
    browsing: Browsing, body: Sequence[Text], width: int, height: int, asks: str = ""
) -> list[Text]:
    """Return a screen: where one is, a page, what the last key came to, and the keys.

    Args:
        browsing: Where the reviewer is.
        body: What the page is of.
        width: Columns.
        height: Lines.
        asks: A question in the place of the keys.
    """
    group, page = browsing.group, page_of(height)
    shown = list(body[browsing.top : browsing.top + page])
    more = len(body) - browsing.top - len(shown)
    told = f" {browsing.place} {browsing.state}  {group.id}  {group.size} "
    above = [
        _cut(Text(told.ljust(width), style="reverse"), width),
        _cut(Text(one_line(group.title), style="bold"), width),
        Text("-" * width, style="bright_black"),
    ]
    shown += [Text()] * (page - len(shown))
    rest = f"-- {more} more lines (space) " if more > 0 else ""
    return [*above, *shown, _rule(rest, width), *_below(browsing.message, width, asks)][:height]


def encode_frame(lines: Sequence[Text], width: int, *, dumb: bool) -> str:
    """Return a screen as a terminal draws it.

    Args:
        lines: Its lines.
        width: Columns.
        dumb: Whether the terminal knows no control sequences.
    """
    console = Console(force_terminal=not dumb, width=width, highlight=False)
    drawn = []
    for text in lines:
        with console.capture() as capture:
            console.print(text, end="", soft_wrap=True)
        drawn.append(capture.get())
    if dumb:
        return "\n".join(drawn) + "\n"
    return _HOME + f"{_TO_END_OF_LINE}\r\n".join(drawn) + _TO_END_OF_LINE + TO_END


def _rule(text: str, width: int) -> Text:
    return _cut(Text(text.ljust(width, "-"), style="bright_black"), width)


def _below(message: str, width: int, asks: str) -> list[Text]:
    keys = asks or (KEYS if len(KEYS) <= width else SHORT_KEYS)
    told = folded([Line(one_line(message), Tone.WARNING)], width)[:_MESSAGE]
    told += [Text()] * (_MESSAGE - len(told))
    return [*(_cut(one, width) for one in told), _cut(Text(keys, style="bold"), width)]


def _cut(text: Text, width: int) -> Text:
    text = text.copy()
    text.truncate(width)
    return text
