"""Rows of a history: releases in which something is the same, drawn as one."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate, groupby
from typing import TYPE_CHECKING, Final

from conformance.engine.transitions import ENDING, FACTS, TransitionKind
from conformance.report.site.addresses import point_anchor

if TYPE_CHECKING:
    from conformance.engine.job_comparison import StoredJob
    from conformance.engine.transitions import Timeline, Transition
    from conformance.model.record import Record
    from conformance.report.tracks import Track

VERDICT: Final = "verdict"


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """Neighbouring releases that are the same.

    Attributes:
        first: The oldest.
        last: The newest.
        length: How many there are.
        state: What they show: a verdict, `same` or `other` by turns, or empty where nothing was
            seen.
        record: The first job, None where there is none.
        anchor: The change that it begins with, empty where there is none.
    """

    first: str
    last: str
    length: int
    state: str
    record: Record | None = None
    anchor: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Strip:
    """A row of segments: `name` is `verdict`, or an artifact."""

    name: str
    segments: tuple[Segment, ...]


def make_strip(row: str, history: Timeline, track: Track) -> Strip:
    """Return a row of a case's history on a track.

    Args:
        row: `verdict`, or an artifact.
        history: The history.
        track: The track.
    """
    begins = {p.after.record.cell for p in history.points if _concerns(row, p)}
    turns = list(accumulate(cell.id in begins for cell in track.shown))
    states = [_state(row, job, turn) for job, turn in zip(history.jobs, turns, strict=True)]
    segments = []
    for _, numbers in groupby(range(len(states)), lambda n: (states[n], turns[n])):
        first, *more = numbers
        cell = track.shown[first]
        job = history.jobs[first]
        segments.append(
            Segment(
                first=track.labels[first],
                last=track.labels[more[-1] if more else first],
                length=1 + len(more),
                state=states[first],
                record=None if job is None else job.record,
                anchor=point_anchor(track.name, cell.label) if cell.id in begins else "",
            )
        )
    return Strip(name=row, segments=tuple(segments))


def _concerns(row: str, point: Transition) -> bool:
    if row == VERDICT:
        return point.kind is not TransitionKind.SAME
    return row in point.changed


def _state(row: str, job: StoredJob | None, turn: int) -> str:
    """Return what a cell shows of a row."""
    if job is None:
        return ""
    if row == VERDICT:
        return str(job.record.verdict)
    if not job.record.outcome.observed or not _has(row, job.record):
        return ""
    return "other" if turn % 2 else "same"


def _has(row: str, record: Record) -> bool:
    if row == ENDING:
        return True
    return bool(record.facts) if row == FACTS else row in record.artifacts
