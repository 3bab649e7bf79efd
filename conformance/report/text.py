"""Text of reports: text from elsewhere made safe to show, lists of names, times, addresses."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from shlex import quote
from typing import TYPE_CHECKING, Final

from conformance.wording import plural

if TYPE_CHECKING:
    from collections.abc import Sequence

    from conformance.model.run import RunCase

MOST: Final = 20_000
"""Characters of a text that are shown by default."""
LISTED: Final = 3
"""Names of a list that are shown by default."""
# Bidirectional controls make a text read in another order than it is stored ("Trojan Source"),
# and the invisible ones hide that two names differ.
_BIDI: Final = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
_INVISIBLE: Final = "\u200b-\u200d\u2060\ufeff\u2028\u2029"
_ACTING: Final = re.compile(
    rf"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff{_BIDI}{_INVISIBLE}]"
)
"""Control codes except line feed and tab, lone surrogates, and marks that reorder or hide text."""
_MARKS: Final = re.compile(rf"[\x80-\x9f\ufffe\uffff{_BIDI}{_INVISIBLE}]")
_PICTURES: Final = 0x2400
"""First code point of the Unicode pictures of the ASCII control codes."""
_SPACE: Final = 0x20


def sanitize(text: str, most: int = MOST) -> str:
    """Return a text in which nothing acts on a terminal, a page or an XML reader.

    Args:
        text: Any text.
        most: Characters to keep.

    Returns:
        The text with a picture or the code point in place of each control code, lone surrogate,
        and mark that reorders or hides; cut with a note of how much is left out.
    """
    # Most texts are short and printable, and the pattern need not be tried on them.
    if len(text) <= most and text.isprintable():
        return text
    cut = text[:most]
    if len(text) > most:
        cut += f" ... {len(text) - most:,} more characters"
    return _ACTING.sub(_picture, cut)


def escape_marks(text: str) -> str:
    """Return a text with the code point in place of each mark that reorders or hides text.

    Control codes of terminals stay, unlike with `sanitize`: this is for text that has colours.

    Args:
        text: Any text.
    """
    return text if text.isascii() else _MARKS.sub(_picture, text)


def _picture(match: re.Match[str]) -> str:
    code = ord(match[0])
    return chr(_PICTURES + code) if code < _SPACE else f"<U+{code:04X}>"


def flatten(text: str, most: int = MOST) -> str:
    """Return a sanitized text in one line.

    Args:
        text: Any text.
        most: Characters to keep.
    """
    return " ".join(sanitize(text, most).split())


def join_names(names: Sequence[str], most: int = LISTED) -> str:
    """Return the first names, and how many more there are.

    Args:
        names: The names.
        most: How many of them are named.
    """
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def name_or_count(names: Sequence[str], noun: str) -> str:
    """Return a single name, else how many names there are.

    Args:
        names: The names.
        noun: Noun for a thing with such a name, in the singular.
    """
    return names[0] if len(names) == 1 else plural(len(names), noun)


def format_moment(text: str) -> str:
    """Return a time to the minute, e.g. `2026-11-21 20:17 UTC`; other text is only flattened.

    Args:
        text: ISO 8601; without a zone it is taken as UTC.
    """
    time = parse_time(text)
    return flatten(text, 40) if time is None else f"{time:%Y-%m-%d %H:%M} UTC"


def parse_time(text: str) -> datetime | None:
    """Return a time in UTC, None for a text that is not a time.

    Args:
        text: ISO 8601; without a zone it is taken as UTC.
    """
    try:
        time = datetime.fromisoformat(text)
        return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
    except (ValueError, OverflowError):  # a zone may move year 1 or 9999 out of range
        return None


def make_rerun_command(name: str, case: RunCase, *cells: str) -> str:
    """Return the shell command that runs a case or a test of a suite again.

    Args:
        name: Case id.
        case: The case, as its run describes it.
        cells: Selectors of the cells to run it in.
    """
    options = [f"--cell {quote(cell)}" for cell in dict.fromkeys(cells)]
    target = case.arguments or quote(name)
    if case.kind != "test":
        return " ".join(["conformance run", target, *options])
    # The target is last because it may end with arguments of pytest itself.
    return " ".join(["conformance suite run", *options, target])
