"""Patterns of an IR difference with their lines side by side, the words that differ marked."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final, TypeAlias

from conformance.corpus.project import relative_to_project
from conformance.report.ir_differences import align_lines, style_line
from conformance.report.text import flatten, sanitize

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.text import Text

    from conformance.ir.change import Change
    from conformance.model.record import Record

MARK = "mark"
MESSAGE: Final = 4_000
"""Characters of an error's message."""
MESSAGE_LINES: Final = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class TextRun:
    """Words of a line that differ from its counterpart's, or do not."""

    text: str
    differs: bool


Row: TypeAlias = "tuple[tuple[TextRun, ...] | None, tuple[TextRun, ...] | None]"
"""A line before and its counterpart after; None where one side has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Excerpt:
    """One pattern of a difference.

    Attributes:
        severity: How grave it is.
        title: It in a few words, with how often it occurs.
        where: Of the example.
        rows: Lines of the example, side by side.
    """

    severity: str
    title: str
    where: str
    rows: tuple[Row, ...]


def make_excerpt(change: Change, case: str, roots: Iterable[str] = ()) -> Excerpt:
    """Return a pattern as a page shows it.

    Args:
        change: The pattern.
        case: Id of the case, from whose project files are told.
        roots: Folders of the project, where they are known.
    """
    about = f" ({change.about})" if change.about else ""
    times = f" x{change.count}" if change.count > 1 else ""
    return Excerpt(
        severity=change.severity,
        title=f"{change.title}{about}{times}",
        where=relative_to_project(change.where, case, *roots),
        rows=align_sides(change.before, change.after),
    )


def render_ending(record: Record) -> tuple[str, ...]:
    """Return how a job ended, in a few lines.

    Args:
        record: The job.
    """
    return (f"{record.outcome}, {record.conformance}", *render_error(record))


def render_error(record: Record) -> tuple[str, ...]:
    """Return the error that a job ended with, in a few lines; none where there is none.

    Args:
        record: The job.
    """
    if record.error is None:
        return ()
    message = sanitize(record.error.message, MESSAGE)
    lines = [line for line in f"{record.error.type}: {message}".splitlines() if line.strip()]
    return (*lines[:MESSAGE_LINES], *(["..."] if len(lines) > MESSAGE_LINES else []))


@lru_cache(maxsize=4096)
def align_sides(before: tuple[str, ...], after: tuple[str, ...]) -> tuple[Row, ...]:
    """Return lines set against each other, the words that differ marked.

    Args:
        before: A few lines.
        after: A few others.
    """
    rows = []
    for one, other in align_lines(before, after):
        old = None if one is None else before[one]
        new = None if other is None else after[other]
        rows.append((_runs(old, new), _runs(new, old)))
    return tuple(rows)


def _runs(line: str | None, other: str | None) -> tuple[TextRun, ...] | None:
    if line is None:
        return None
    shown = flatten(line)
    return split_runs(style_line(shown, None if other is None else flatten(other), MARK).text)


def split_runs(text: Text) -> tuple[TextRun, ...]:
    """Return a text in runs of what is marked and what is not.

    Args:
        text: A text whose spans, and whose style as a whole, are marks.
    """
    plain = text.plain
    if text.style == MARK:
        return (TextRun(text=plain, differs=True),)
    runs, at = [], 0
    for span in text.spans:
        if span.start > at:
            runs.append(TextRun(text=plain[at : span.start], differs=False))
        runs.append(TextRun(text=plain[span.start : span.end], differs=True))
        at = span.end
    if at < len(plain):
        runs.append(TextRun(text=plain[at:], differs=False))
    return tuple(runs)
