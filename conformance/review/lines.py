"""Lines of evidence as styled text; control codes in text from elsewhere are made visible."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Final

from rich.text import Text

from conformance.report.text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rich.console import Console, ConsoleOptions

HEAD: Final = "bold"
QUIET: Final = "bright_black"
BEFORE: Final = "red"
AFTER: Final = "green"
WARNING: Final = "yellow"
_LONGEST: Final = 1_000
_STEP: Final = 2
_LEAST_WIDTH: Final = 20


def line(text: str, style: str = "") -> Text:
    """Return a line in which nothing acts on a terminal.

    Args:
        text: Any text.
        style: Style of rich.
    """
    return Text(one_line(text, _LONGEST), style=style)


def indent_below(title: Text, lines: Iterable[Text]) -> list[Text]:
    """Return a line with others below it, indented."""
    indented = list(lines)
    for one in indented:
        one.pad_left(_STEP)
    return [title, *indented]


def section(title: str, lines: Iterable[Text], style: str = HEAD) -> list[Text]:
    """Return a title with lines below it; nothing if there are none.

    Args:
        title: The title.
        lines: The lines.
        style: Style of the title.
    """
    shown = list(lines)
    return indent_below(line(title, style), shown) if shown else []


def limit_lines(lines: Sequence[Text], most: int, more: str) -> list[Text]:
    """Return the first lines, and how many more there are.

    Args:
        lines: The lines.
        most: Lines that are kept.
        more: Text of the line in place of the others, `{}` for their number.
    """
    left = len(lines) - most
    return [*lines[:most], *([line(more.format(left), QUIET)] if left > 0 else [])]


class WrappedLines:
    """Lines for rich, wrapped to the width of the terminal; continuations are indented further.

    Args:
        lines: The lines.
    """

    def __init__(self, lines: Sequence[Text]) -> None:
        self._lines = lines

    def __rich_console__(self, _: Console, options: ConsoleOptions) -> Iterator[Text]:
        """Yield the lines of a console's width."""
        for one in self._lines:
            body = one.plain.lstrip(" ")
            indent = min(len(one.plain) - len(body), options.max_width // 2)
            parts = textwrap.wrap(
                body,
                max(options.max_width, _LEAST_WIDTH),
                initial_indent=" " * indent,
                subsequent_indent=" " * (indent + _STEP),
                break_on_hyphens=False,
            )
            yield from (Text(part, style=one.style) for part in parts or [""])
