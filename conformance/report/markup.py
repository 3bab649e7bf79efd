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
"""Characters of code within a line, and of a block of code."""
NOTE: Final = 120
"""Characters reserved for the line that counts the entries that a section leaves out."""
WIDTH: Final = 100
"""Characters of a line of prose."""
_TICKS: Final = re.compile("`+")


def to_code(text: str, most: int = MOST_CODE) -> str:
    """Return a text as code within a line: nothing in it is markup, a mention or a reference.

    Args:
        text: Any text.
        most: Characters to keep.
    """
    # Empty code would be two ticks, which open a longer fence.
    shown = flatten(text, most) or "(empty)"
    ticks = "`" * (_measure_ticks(shown) + 1)
    # CommonMark strips a space on both sides; without it, a tick at an end would join the fence.
    pad = " " if "`" in {shown[0], shown[-1]} else ""
    return f"{ticks}{pad}{shown}{pad}{ticks}"


def fence(text: str, most: int = MOST_BLOCK, language: str = "text") -> str:
    """Return a text as a block of code.

    Args:
        text: Any text.
        most: Characters to keep.
        language: Language of the highlighting.
    """
    shown = sanitize(text, most)
    ticks = "`" * max(3, _measure_ticks(shown) + 1)
    return f"{ticks}{language}\n{shown}\n{ticks}"


def _measure_ticks(text: str) -> int:
    return max(map(len, _TICKS.findall(text)), default=0)


def to_row(cells: Iterable[str], widths: Sequence[int]) -> str:
    """Return a row of a table, padded so that the source reads as a table too.

    Args:
        cells: Text of each cell.
        widths: Minimum width of each column, in characters.
    """
    padded = (f"{cell:{width}}" for cell, width in zip(cells, widths, strict=True))
    return _join_row(padded)


def to_table(rows: Sequence[Sequence[str]]) -> str:
    """Return a table without padding.

    Args:
        rows: The heading, then the other rows.
    """
    # Committed pages use it: padding would rewrite every row when a cell becomes longer.
    return "\n".join(map(_join_row, (rows[0], ["---"] * len(rows[0]), *rows[1:])))


def _join_row(cells: Iterable[str]) -> str:
    # GitHub divides a row at each `|`, even within code, unless a backslash precedes it.
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def fold(summary: str, body: str) -> str:
    """Return a folded part of a page.

    Args:
        summary: The visible line, plain text.
        body: The folded part, Markdown.
    """
    # Without the empty lines GitHub takes the body for HTML and shows its Markdown as text.
    return f"<details><summary>{summary}</summary>\n\n{body}\n\n</details>"


def wrap(text: str) -> str:
    """Return prose in lines of at most `WIDTH` characters, unless a word is longer."""
    # A broken word might be a link or code.
    return textwrap.fill(text, WIDTH, break_on_hyphens=False, break_long_words=False)


class SectionEntry(NamedTuple):
    """A part of a section that is shown as a whole, or left out.

    Attributes:
        render: Returns its text; called only while there is room, as a report may have thousands.
        jobs: Number of jobs that it is about.
    """

    render: Callable[[], str]
    jobs: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A part of a text that may be cut.

    Attributes:
        head: Heading, which is always shown.
        entries: Entries, the important first.
        noun: Plural noun for entries, e.g. `root causes`.
        opening: Text before the first entry, shown only with an entry.
        end: Text at the end, which is always shown.
        gap: Text between entries.
        share: Share of the remaining room that it may take, from 0 to 1.
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
        """Characters of the section without any entry."""
        return len(self.head) + len(self.end) + NOTE

    def fit(self, room: int) -> str:
        """Return the section with as many entries as there is room for.

        Args:
            room: Characters in addition to `least`.
        """
        taken = [self.opening] if self.opening else []
        room -= len(self.opening)
        for entry in self.entries:
            text = entry.render()
            room -= len(text) + len(self.gap)
            # No smaller entry further down takes its place: shown entries are the most important.
            if room < 0:
                break
            taken.append(text)
        number = len(taken) - bool(self.opening)
        omitted = self.entries[number:]
        body = [self.gap.join(taken)] if number else []
        if omitted:
            jobs = sum(entry.jobs for entry in omitted)
            of = f", which show {jobs:,} jobs" if jobs else ""
            body.append(f"*{len(omitted):,} more {self.noun} are left out here{of}.*")
        return "\n\n".join(part for part in (self.head, *body, self.end) if part)


def fit_sections(head: str, sections: Sequence[Section], most: int) -> str:
    """Return a text of sections that has at most a number of characters.

    Args:
        head: Text before the sections.
        sections: The sections; room that a section leaves is for the sections after it.
        most: Number of characters, at least those of `head` and of all sections without entries.
    """
    parts = [head]
    gap = len("\n\n")
    # Each section has up to four gaps: before it, and between its head, entries, note and end.
    room = most - len(head) - gap - sum(section.least + 4 * gap for section in sections)
    for section in sections:
        text = section.fit(int(room * section.share))
        room -= max(0, len(text) - section.least)
        parts.append(text)
    return "\n\n".join(parts) + "\n"
