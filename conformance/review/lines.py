"""Lines of text that tell of a group: what is from elsewhere is made fit to be shown here."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from conformance.report.text import one_line

_LONGEST = 1_000


class Tone(StrEnum):
    """What a line is."""

    HEAD = "head"
    PLAIN = "plain"
    QUIET = "quiet"
    BEFORE = "before"
    AFTER = "after"
    WARNING = "warning"


class Line(NamedTuple):
    """One line."""

    text: str
    tone: Tone = Tone.PLAIN


def line(text: str, tone: Tone = Tone.PLAIN, indent: int = 0) -> Line:
    """Return a line in which nothing acts on a terminal.

    Args:
        text: Any text.
        tone: What it is.
        indent: Spaces before it.
    """
    return Line(" " * indent + one_line(text, _LONGEST), tone)


def head(text: str) -> Line:
    """Return the first line of a part."""
    return line(text, Tone.HEAD)


def lines_of(text: str, most: int, tone: Tone = Tone.PLAIN, indent: int = 0) -> list[Line]:
    """Return a text of several lines, the first of them.

    Args:
        text: Any text.
        most: How many lines are kept.
        tone: What they are.
        indent: Spaces before each.
    """
    found = text.splitlines()
    told = [line(one, tone, indent) for one in found[:most]]
    if len(found) > most:
        told.append(line(f"... {len(found) - most} more lines", Tone.QUIET, indent))
    return told
