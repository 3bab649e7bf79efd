"""Markdown written safely: texts from elsewhere as code, and sections cut at whole entries."""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from conformance.report.text import flatten, sanitize

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

MOST_CODE, MOST_BLOCK = 300, 1_500
"""Characters of a text within a line, and of one that has lines of its own."""
NOTE: Final = 120
"""Room kept for the line that says what of a section is left out."""
WIDTH: Final = 100
"""Characters of a line of prose."""
_TICKS: Final = re.compile("`+")


def to_code(text: str, most: int = MOST_CODE) -> str:
    """Return a text as code within a line: nothing in it is markup, a mention or a reference.

    Args:
        text: Any text.
        most: Characters to keep.
    """
    shown = flatten(text, most) or "(empty)"
    ticks = "`" * (_measure_ticks(shown) + 1)
    # A space on both sides is no part of the code, a tick at its end would be one of the fence.
    pad = " " if "`" in {shown[0], shown[-1]} else ""
    return f"{ticks}{pad}{shown}{pad}{ticks}"


def fence(text: str, most: int = MOST_BLOCK, language: str = "text") -> str:
    """Return a text as code with lines of its own.

    Args:
        text: Any text.
        most: Characters to keep.
        language: What it is highlighted as.
    """
    shown = sanitize(text, most)
    ticks = "`" * max(3, _measure_ticks(shown) + 1)
    return f"{ticks}{language}\n{shown}\n{ticks}"


def _measure_ticks(text: str) -> int:
    return max(map(len, _TICKS.findall(text)), default=0)


def to_row(cells: Iterable[str], widths: Sequence[int]) -> str:
    """Return a row of a table, in columns of a width at least, so that it reads as text too.

    Args:
        cells: What they hold.
        widths: Width of each column.
    """
    padded = (f"{cell:{width}}" for cell, width in zip(cells, widths, strict=True))
    return _join_row(padded)


def to_table(rows: Sequence[Sequence[str]]) -> str:
    """Return a table, as narrow as it can be.

    Args:
        rows: The first is its heading.
    """
    return "\n".join(map(_join_row, (rows[0], ["---"] * len(rows[0]), *rows[1:])))


def _join_row(cells: Iterable[str]) -> str:
    # A table divides at each stroke, also within code, unless a backslash says no.
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def fold(summary: str, body: str) -> str:
    """Return something that is folded.

    Args:
        summary: What is seen of it, plain text.
        body: Markdown.
    """
    return f"<details><summary>{summary}</summary>\n\n{body}\n\n</details>"


def wrap(text: str) -> str:
    """Return prose in lines that are not too long; words are never broken."""
    return textwrap.fill(text, WIDTH, break_on_hyphens=False, break_long_words=False)


class SectionEntry(NamedTuple):
    """A part of a section that is told as a whole, or left out.

    Attributes:
        told: Makes its lines; asked only of what may fit.
        jobs: How many jobs it tells of.
    """

    render: Callable[[], str]
    jobs: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A part of a text that may be cut.

    Attributes:
        head: What comes first, and is always told.
        opening: What comes before the first entry, if any is told.
        entries: What follows, the important first.
        what: What an entry is, in the plural.
        end: What comes last, and is always told.
        gap: What stands between entries.
        share: Which part of the room that is left it may take.
    """

    head: str
    entries: Sequence[SectionEntry]
    noun: str
    opening: str = ""
    end: str = ""
    gap: str = "\n"
    share: float = 1.0

    @property
    def least(self) -> int:
        """Characters that it takes without any entry."""
        return len(self.head) + len(self.end) + NOTE

    def fit(self, room: int) -> str:
        """Return the section in as many characters as there are, or fewer.

        Args:
            room: How many there are, beside the least.
        """
        taken = [self.opening] if self.opening else []
        room -= len(self.opening)
        for entry in self.entries:
            text = entry.render()
            room -= len(text) + len(self.gap)
            if room < 0:
                break
            taken.append(text)
        told = len(taken) - bool(self.opening)
        left = self.entries[told:]
        body = [self.gap.join(taken)] if told else []
        if left:
            jobs = sum(entry.jobs for entry in left)
            of = f", which show {jobs:,} jobs" if jobs else ""
            body.append(f"*{len(left):,} more {self.noun} are left out here{of}.*")
        return "\n\n".join(part for part in (self.head, *body, self.end) if part)


def fit_sections(head: str, sections: Sequence[Section], most: int) -> str:
    """Return a text of sections that has at most a number of characters.

    Args:
        head: What comes first.
        sections: What follows; what one leaves of its share is for those after it.
        most: How many characters; what is told in any case must fit.
    """
    parts = [head]
    gap = len("\n\n")
    room = most - len(head) - gap - sum(section.least + 4 * gap for section in sections)
    for section in sections:
        text = section.fit(int(room * section.share))
        room -= max(0, len(text) - section.least)
        parts.append(text)
    return "\n\n".join(parts) + "\n"
