"""Evidence of a change: lines side by side with differing words marked, and plots of values."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from conformance.corpus.project import relative_to_project
from conformance.judge.tolerance import compute_ulp_distance, is_float, split_complex
from conformance.model.value import to_array
from conformance.report.ir_differences import align_lines, style_line
from conformance.report.text import flatten, sanitize

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray
    from rich.text import Text

    from conformance.ir.change import Change
    from conformance.model.record import Record
    from conformance.model.value import Leaf, Value


MARK = "mark"
MESSAGE: Final = 4_000
"""Characters of an error's message."""
MESSAGE_LINES: Final = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class TextRun:
    """A part of a line that differs from the counterpart of the line, or is equal."""

    text: str
    differs: bool


Row: TypeAlias = "tuple[tuple[TextRun, ...] | None, tuple[TextRun, ...] | None]"
"""A line before and its counterpart after; None where one side has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Excerpt:
    """One pattern of a difference.

    Attributes:
        severity: Severity of the pattern.
        title: The pattern in a few words, with its number of occurrences.
        where: Source location of the example.
        rows: Lines of the example, side by side.
    """

    severity: str
    title: str
    where: str
    rows: tuple[Row, ...]


def make_excerpt(change: Change, case: str, roots: Iterable[str] = ()) -> Excerpt:
    """Return the excerpt of a pattern for a page.

    Args:
        change: A pattern of an IR diff.
        case: Id of the case whose files the excerpt names.
        roots: Folders of the project, if known; paths are shown relative to them.
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
    """Return outcome, conformance and error of a job, in a few lines.

    Args:
        record: The job.
    """
    return (f"{record.outcome}, {record.conformance}", *render_error(record))


def render_error(record: Record) -> tuple[str, ...]:
    """Return the error of a job in a few lines; empty without an error.

    Args:
        record: The job.
    """
    if record.error is None:
        return ()
    message = sanitize(record.error.message, MESSAGE)
    lines = [line for line in f"{record.error.type}: {message}".splitlines() if line.strip()]
    return (*lines[:MESSAGE_LINES], *(["..."] if len(lines) > MESSAGE_LINES else []))


# The same pattern is on the pages of many cases, and the alignment takes quadratic time.
@lru_cache(maxsize=4096)
def align_sides(before: tuple[str, ...], after: tuple[str, ...]) -> tuple[Row, ...]:
    """Return the lines of two texts side by side, the words that differ marked.

    Args:
        before: Lines of the older text.
        after: Lines of the newer text.
    """
    rows = []
    for one, other in align_lines(before, after):
        old = None if one is None else before[one]
        new = None if other is None else after[other]
        rows.append((_split_line(old, new), _split_line(new, old)))
    return tuple(rows)


def _split_line(line: str | None, other: str | None) -> tuple[TextRun, ...] | None:
    if line is None:
        return None
    shown = flatten(line)
    return split_runs(style_line(shown, None if other is None else flatten(other), MARK).text)


def split_runs(text: Text) -> tuple[TextRun, ...]:
    """Return a text as alternating parts, marked and unmarked.

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


BINS: Final = 64
"""Maximum number of columns of a plot: neighbouring elements of a larger leaf share a column."""
_NUMBERS: Final = "biufcV"
"""Kinds of NumPy's dtypes with numbers; bfloat16 and other types of ml_dtypes have kind `V`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ValuePlot:
    """The distances between the elements of two leaves, in row-major order.

    Attributes:
        path: Path of the leaf.
        shape: Its shape.
        unit: `ulp` for inexact dtypes, otherwise `absolute`.
        heights: The largest distance in each column; infinite if one side is not a number.
        differing: Number of elements that differ.
        size: Number of elements.
    """

    path: str
    shape: tuple[int, ...]
    unit: str
    heights: tuple[float, ...]
    differing: int
    size: int

    @property
    def largest(self) -> float:
        """The largest distance, infinite if one side is not a number."""
        return max(self.heights)

    @property
    def bars(self) -> tuple[float, ...]:
        """Heights between 0 and 1, on a logarithmic scale: 1 ULP is visible next to a million."""
        # An infinite height as the scale would flatten all other bars.
        top = max((h for h in self.heights if math.isfinite(h)), default=0.0)
        scale = math.log1p(top) or 1.0
        return tuple(math.log1p(h) / scale if math.isfinite(h) else 1.0 for h in self.heights)


def make_value_plots(before: Value, after: Value) -> tuple[ValuePlot, ...]:
    """Return a plot of each numeric leaf that differs and has the same shape and dtype.

    Args:
        before: The older value.
        after: The newer value; leaves are matched by path.
    """
    old = {leaf.path: leaf for leaf in before.leaves}
    pairs = ((old[leaf.path], leaf) for leaf in after.leaves if leaf.path in old)
    # Compared as bytes, which are equal for equal NaNs too.
    plots = (_make_plot(one, other) for one, other in pairs if one.data != other.data)
    return tuple(plot for plot in plots if plot is not None)


def _make_plot(before: Leaf, after: Leaf) -> ValuePlot | None:
    if (before.kind, before.shape, before.dtype) != (after.kind, after.shape, after.dtype):
        return None
    if before.kind == "python":
        return None
    one, other = to_array(before), to_array(after)
    if one.size < 2 or one.dtype.kind not in _NUMBERS:  # noqa: PLR2004 - one bar says nothing
        return None
    # Exact dtypes are subtracted as float: unsigned integers would wrap around.
    inexact = one.dtype.kind == "c" or is_float(one.dtype)
    far = _compute_ulps(one, other) if inexact else np.abs(one.astype(float) - other.astype(float))
    flat = far.reshape(-1)
    return ValuePlot(
        path=after.path,
        shape=after.shape,
        unit="ulp" if inexact else "absolute",
        heights=tuple(float(np.max(part)) for part in np.array_split(flat, min(BINS, flat.size))),
        differing=int((flat > 0).sum()),
        size=int(flat.size),
    )


def _compute_ulps(one: NDArray[Any], other: NDArray[Any]) -> NDArray[np.float64]:
    """Return the distance of each element in ULP; of a complex element, that of its worse part."""
    found = compute_ulp_distance(split_complex(one), split_complex(other)).astype(np.float64)
    return found.max(axis=-1) if found.ndim > one.ndim else found
