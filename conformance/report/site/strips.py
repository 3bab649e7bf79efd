"""Rows of a history: neighbouring releases without a change are a segment."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate, groupby
from typing import TYPE_CHECKING, Final

from packaging.version import Version

from conformance.engine.runs.transitions import ENDING, FACTS, TransitionKind
from conformance.model.outcome import Outcome
from conformance.report.site.addresses import point_anchor
from conformance.report.text import flatten

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from conformance.engine.runs.stored_job import StoredJob
    from conformance.engine.runs.transitions import Timeline, Transition
    from conformance.model.record import Record
    from conformance.report.tracks import Track
    from conformance.report.upgrade.file import UpgradeChange, UpgradePoint
    from conformance.triage.upgrade.effect import Effect


VERDICT: Final = "verdict"


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """Neighbouring releases without a change.

    Attributes:
        first: Label of the oldest release.
        last: Label of the newest release.
        length: Number of releases.
        state: A verdict; for an artifact, `same` and `other` alternately; empty without a job.
        record: Record of the first job, None without a job.
        anchor: Anchor of the change at its beginning, empty for none.
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
    begins = {p.after.record.cell for p in history.points if _changes_row(row, p)}
    # The number of changes up to each cell: two neighbours with equal verdicts and a change in
    # between are two segments, with different colours.
    turns = list(accumulate(cell.id in begins for cell in track.compared_cells))
    states = [_find_state(row, job, turn) for job, turn in zip(history.jobs, turns, strict=True)]
    segments = []
    for _, numbers in groupby(range(len(states)), lambda n: (states[n], turns[n])):
        first, *more = numbers
        cell = track.compared_cells[first]
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


def _changes_row(row: str, point: Transition) -> bool:
    if row == VERDICT:
        return point.kind is not TransitionKind.SAME
    return row in point.changed


def _find_state(row: str, job: StoredJob | None, turn: int) -> str:
    """Return the state of a cell in a row, empty without an observation."""
    if job is None:
        return ""
    if row == VERDICT:
        return str(job.record.verdict)
    if not job.record.outcome.observed or not _has_artifact(row, job.record):
        return ""
    return "other" if turn % 2 else "same"


def _has_artifact(row: str, record: Record) -> bool:
    if row == ENDING:
        return True
    return bool(record.facts) if row == FACTS else row in record.artifacts


DIED: Final = frozenset({Outcome.CRASHED, Outcome.TIMED_OUT, Outcome.OUT_OF_MEMORY})
NOT_TRIED: Final = "not tried"
WORD: Final = 60
"""Characters of the name of an error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UpgradeSegment:
    """Neighbouring releases of an upgrade without a change, or that were not tried.

    Attributes:
        first: Label of the oldest release.
        last: Label of the newest release.
        length: Number of releases.
        fill: Classes of the style sheet; empty if not tried.
        summary: Outcome and conformance, in words.
        effect: Effect of the change at its beginning, None for none.
        alternate: True after an odd number of changes, to distinguish neighbours of equal fill.
    """

    first: str
    last: str
    length: int
    fill: str
    summary: str
    effect: Effect | None = None
    alternate: bool = False

    @property
    def range(self) -> str:
        """The first and the last release, as text."""
        return self.first if self.length == 1 else f"{self.first} to {self.last}"


@dataclass(frozen=True, slots=True)
class MinorTick:
    """Neighbouring releases of one minor version."""

    label: str
    length: int


def make_minor_ticks(
    points: Sequence[UpgradePoint], releases: Mapping[str, str]
) -> tuple[MinorTick, ...]:
    """Return the minor versions along an axis.

    Args:
        points: The points of the axis.
        releases: Release of jax by cell id, if known.
    """
    minors = [_find_minor(releases.get(point.cell, "") or point.label) for point in points]
    return tuple(MinorTick(label, len([*same])) for label, same in groupby(minors))


def _find_minor(release: str) -> str:
    try:
        version = Version(release)
    except ValueError:  # an end of an upgrade may be a lock or a path
        return flatten(release)
    return f"{version.major}.{version.minor}"


def make_upgrade_strip(
    points: Sequence[UpgradePoint], records: Mapping[str, Record], changes: Sequence[UpgradeChange]
) -> tuple[UpgradeSegment, ...]:
    """Return the results of a case along an axis.

    Args:
        points: The points of the axis.
        records: Records of the case, by cell id.
        changes: Changes of the case.
    """
    begins = {change.changed_in: change.kind for change in changes}
    turns = list(accumulate(point.label in begins for point in points))
    shown = [_describe_job(records.get(point.cell)) for point in points]
    parts = []
    # Untried releases are a segment even across a change, which has no exact release there.
    for _, places in groupby(range(len(points)), lambda n: (shown[n], turns[n] if shown[n] else 0)):
        first, *more = places
        found = shown[first]
        fill, summary = found or ("", NOT_TRIED)
        parts.append(
            UpgradeSegment(
                first=flatten(points[first].label),
                last=flatten(points[more[-1] if more else first].label),
                length=1 + len(more),
                fill=fill,
                summary=summary,
                effect=begins.get(points[first].label) if found else None,
                alternate=bool(found) and turns[first] % 2 == 1,
            )
        )
    return tuple(parts)


def _describe_job(record: Record | None) -> tuple[str, str] | None:
    """Return the fill and the summary of a job, None without a job."""
    if record is None:
        return None
    outcome, conformance = record.outcome, record.conformance
    error = "" if record.error is None else flatten(record.error.type, WORD)
    summary = str(outcome).replace("_", " ") + (f" {error}" if error else "")
    if not outcome.observed:
        return ("infra" if outcome is Outcome.INFRA else "none"), summary
    fill = "died" if outcome in DIED else f"{outcome} {conformance}"
    return fill, f"{summary}, {conformance}"
