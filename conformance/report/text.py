"""Text from elsewhere, made fit to be shown: nothing in it acts, everything in it is seen."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

MOST: Final = 20_000
"""Characters of one text that are shown, where nothing else is said."""

LISTED: Final = 3
"""Names that are told one by one."""
_BIDI: Final = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
_INVISIBLE: Final = "\u200b-\u200d\u2060\ufeff\u2028\u2029"
_ACTING: Final = re.compile(
    rf"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff{_BIDI}{_INVISIBLE}]"
)
"""Control codes but line feed and tab, lone surrogates, and what reorders or hides a text."""
_MARKS: Final = re.compile(rf"[\x80-\x9f\ufffe\uffff{_BIDI}{_INVISIBLE}]")
_PICTURES: Final = 0x2400
"""Where Unicode has a picture of each ASCII control code."""
_SPACE: Final = 0x20


def visible(text: str, most: int = MOST) -> str:
    """Return a text in which nothing acts on a terminal, a page or an XML reader.

    Args:
        text: Any text.
        most: Characters to keep.

    Returns:
        The text with a picture or the code point in place of each control code, lone surrogate,
        and mark that reorders or hides; cut with a note of how much is left out.
    """
    if len(text) <= most and text.isprintable():  # nothing that acts is
        return text
    cut = text[:most]
    if len(text) > most:
        cut += f" ... {len(text) - most:,} more characters"
    return _ACTING.sub(_picture, cut)


def without_marks(text: str) -> str:
    """Return a text with the code point in place of each mark that reorders or hides text.

    Control codes of terminals stay, unlike with `visible`: this is for text that has colours.

    Args:
        text: Any text.
    """
    return text if text.isascii() else _MARKS.sub(_picture, text)


def one_line(text: str, most: int = MOST) -> str:
    """Return a text as `visible` does, in one line.

    Args:
        text: Any text.
        most: Characters to keep.
    """
    return " ".join(visible(text, most).split())


def listed(names: Sequence[str], most: int = LISTED) -> str:
    """Return the first names, and how many more there are.

    Args:
        names: The names.
        most: How many of them are named.
    """
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def _picture(match: re.Match[str]) -> str:
    code = ord(match[0])
    return chr(_PICTURES + code) if code < _SPACE else f"<U+{code:04X}>"
