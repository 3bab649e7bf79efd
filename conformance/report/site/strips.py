"""Rows of a history: releases in which something is the same, drawn as one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from conformance.report.site.addresses import point_anchor
from conformance.report.transitions import ENDING, FACTS, Kind

if TYPE_CHECKING:
    from conformance.engine.comparing import Side
    from conformance.model.record import Record
    from conformance.report.tracks import Track
    from conformance.report.transitions import Timeline, Transition

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


def strip_of(row: str, history: Timeline, track: Track) -> Strip:
    """Return a row of a case's history on a track.

    Args:
        row: `verdict`, or an artifact.
        history: The history.
        track: The track.
    """
    begun = {point.after.record.cell: point for point in history.points}
    segments: list[Segment] = []
    turn = 0
    for cell, job in zip(track.cells, history.jobs, strict=True):
        release = cell.release or cell.id
        point = begun.get(cell.id)
        starts = point is not None and _concerns(row, point)
        turn += starts
        state = _state(row, job, turn)
        if segments and not starts and segments[-1].state == state:
            segments[-1] = _longer(segments[-1], release)
            continue
        record = None if job is None else job.record
        anchor = point_anchor(track.name, release) if starts else ""
        segments.append(
            Segment(
                first=release, last=release, length=1, state=state, record=record, anchor=anchor
            )
        )
    return Strip(name=row, segments=tuple(segments))


def _concerns(row: str, point: Transition) -> bool:
    if row == VERDICT:
        return point.kind is not Kind.SAME
    return row in point.changed


def _state(row: str, job: Side | None, turn: int) -> str:
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


def _longer(segment: Segment, last: str) -> Segment:
    return replace(segment, last=last, length=segment.length + 1)
