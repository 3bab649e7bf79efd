"""The story of a report in ten seconds: what is unexpected, what was looked at, and when."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from conformance.engine.transitions import TOLD
from conformance.model.outcome import Verdict
from conformance.report.text import flatten
from conformance.report.tracks import make_release_key
from conformance.report.verdicts import WORST_FIRST

if TYPE_CHECKING:
    from collections.abc import Mapping

    from conformance.report.report import Report


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """The most important numbers.

    Attributes:
        jobs: How many jobs there are.
        unexpected: Those that are unexpected by verdict, the worst first.
        causes: In how many root causes they are grouped.
        infra: Jobs that ended for reasons of the host.
        not_run: Jobs that were planned and have no result.
        counts: Every job by verdict, the worst first.
        changes: Changes between releases, by kind.
        cases: How many cases.
        families: How many families.
        releases: The releases, the oldest first.
        tracks: Names of the tracks.
        ended: When the newest run ended, or began where it did not; empty when nobody says.
        problems: Runs that could not be read, a sentence each.
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
        """How many jobs are unexpected."""
        return sum(self.unexpected.values())


def make_story(report: Report) -> Story:
    """Return the story of a report.

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
    return Story(
        jobs=len(records),
        unexpected={str(v): wrong[v] for v in WORST_FIRST if wrong[v]},
        causes=sum(cause.telling for cause in report.causes),
        infra=counts[Verdict.INFRA],
        not_run=len(report.not_run),
        counts={str(v): counts[v] for v in WORST_FIRST if counts[v]},
        changes={str(kind): kinds[kind] for kind in TOLD if kinds[kind]},
        cases=len(report.cases),
        families=len(report.families),
        releases=tuple(map(flatten, sorted(releases, key=make_release_key))),
        tracks=tuple(flatten(track.name) for track in report.tracks),
        ended=max((run.info.finished or run.info.started for run in report.runs), default=""),
        problems=tuple(flatten(problem, 400) for problem in report.problems),
    )
