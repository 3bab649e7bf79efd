"""The overview of a report: unexpected jobs, all jobs by verdict, and changes between releases."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from conformance.engine.runs.transitions import COUNTED, ENDING, TransitionKind
from conformance.model.outcome import Verdict
from conformance.report.text import flatten
from conformance.report.tracks import make_release_key
from conformance.report.verdicts import WORST_FIRST

if TYPE_CHECKING:
    from collections.abc import Mapping

    from conformance.engine.runs.transitions import Transition
    from conformance.model.record import Record
    from conformance.report.report import Report


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """The most important numbers.

    Attributes:
        jobs: Number of jobs.
        unexpected: Number of unexpected jobs by verdict, the worst first.
        causes: Number of their root causes.
        infra: Jobs that ended for reasons of the host.
        not_run: Jobs that were planned and have no result.
        counts: Number of jobs by verdict, the worst first.
        changes: Number of changes between releases, by kind.
        cases: Number of cases.
        families: Number of families.
        releases: The releases, the oldest first.
        tracks: Names of the tracks.
        ended: Time at which the newest run ended, or began if it did not end; empty if unknown.
        problems: Runs that could not be read, a sentence for each.
    """

    jobs: int
    unexpected: Mapping[str, int]
    causes: int
    infra: int
    not_run: int
    counts: Mapping[str, int]
    changes: Mapping[str, int]
    cases: int
    families: int
    releases: tuple[str, ...]
    tracks: tuple[str, ...]
    ended: str
    problems: tuple[str, ...]

    @property
    def wrong(self) -> int:
        """Number of unexpected jobs."""
        return sum(self.unexpected.values())


def make_overview(report: Report) -> Overview:
    """Return the overview of a report.

    Args:
        report: The runs to report.
    """
    records = report.records
    counts = Counter(record.verdict for record in records)
    kinds = Counter(point.kind for _, _, point in report.points())
    releases = {cell.release for track in report.tracks for cell in track.cells if cell.release}
    wrong = Counter(
        record.verdict
        for record in records
        if record.unexpected and not report.is_first_seen(record)
    )
    return Overview(
        jobs=len(records),
        unexpected={str(v): wrong[v] for v in WORST_FIRST if wrong[v]},
        causes=sum(cause.is_about_jax for cause in report.causes),
        infra=counts[Verdict.INFRA],
        not_run=len(report.not_run),
        counts={str(v): counts[v] for v in WORST_FIRST if counts[v]},
        changes={str(kind): kinds[kind] for kind in COUNTED if kinds[kind]},
        cases=len(report.cases),
        families=len(report.families),
        releases=tuple(map(flatten, sorted(releases, key=make_release_key))),
        tracks=tuple(flatten(track.name) for track in report.tracks),
        ended=max((run.info.finished or run.info.started for run in report.runs), default=""),
        problems=tuple(flatten(problem, 400) for problem in report.problems),
    )


GRAVEST_FIRST: Final = (TransitionKind.REGRESSED, TransitionKind.CHANGED, TransitionKind.FIXED)
"""Kinds of changes that an overview shows, in their order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseChange:
    """The common part of equal changes between releases.

    Attributes:
        kind: Kind of the changes.
        release: The release that made them; the id of the cell if the release is unknown.
        artifacts: Names of the artifacts that differ.
        endings: Outcome or error before and after, empty if they are equal; the type of the error
            twice if only the message differs.
    """

    kind: TransitionKind
    release: str
    artifacts: tuple[str, ...]
    endings: tuple[str, str] = ("", "")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseChangeGroup:
    """A change, with the cases and tracks that show it.

    Attributes:
        change: The change.
        cases: Case ids, in order.
        tracks: Names of tracks, in order.
        points: Number of change points that show it.
    """

    change: ReleaseChange
    cases: tuple[str, ...]
    tracks: tuple[str, ...]
    points: int


def collect_changes(report: Report) -> list[ReleaseChangeGroup]:
    """Return the changes of releases, the gravest first, then the most frequent.

    Args:
        report: The runs to report.
    """
    releases = {cell.id: cell.label for cell in report.cells}
    found: dict[ReleaseChange, list[tuple[str, str]]] = {}
    for case, track, point in report.points():
        if point.kind in GRAVEST_FIRST:
            found.setdefault(_make_change(point, releases), []).append((case, track))
    made = [
        ReleaseChangeGroup(
            change=change,
            cases=tuple(dict.fromkeys(case for case, _ in places)),
            tracks=tuple(dict.fromkeys(track for _, track in places)),
            points=len(places),
        )
        for change, places in found.items()
    ]
    return sorted(made, key=lambda group: (GRAVEST_FIRST.index(group.change.kind), -group.points))


def _make_change(point: Transition, releases: Mapping[str, str]) -> ReleaseChange:
    before, after = point.before.record, point.after.record
    release = releases.get(after.cell, after.cell)
    if ENDING not in point.changed:
        return ReleaseChange(kind=point.kind, release=release, artifacts=point.changed)
    # A job that fails has no value and fewer IRs: the other artifacts follow from the ending, and
    # as part of the key would separate equal changes.
    endings = _pair_endings(before, after)
    return ReleaseChange(kind=point.kind, release=release, artifacts=(ENDING,), endings=endings)


def _pair_endings(before: Record, after: Record) -> tuple[str, str]:
    # Two messages of one type of error hold shapes and names of the case: without them, a
    # reworded message is one change for all cases.
    if before.error and after.error and before.error.type == after.error.type:
        return before.error.type, after.error.type
    return _format_ending(before), _format_ending(after)


def _format_ending(record: Record) -> str:
    return str(record.outcome) if record.error is None else record.error.signature
