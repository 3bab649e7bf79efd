"""The content of a report: the newest job of each case in each cell, over one run or several."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from conformance.engine.runs.root_causes import RootCause, find_root_causes
from conformance.engine.runs.stored_job import StoredJob
from conformance.engine.runs.transitions import Timeline, make_timeline
from conformance.model.outcome import Conformance, Verdict
from conformance.model.run import RunCase, selector_of
from conformance.report.text import sanitize
from conformance.report.tracebacks import render_traceback
from conformance.report.tracks import Track, group_tracks

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from conformance.bench.stored import StoredBench
    from conformance.engine.runs.loader import LoadedRun
    from conformance.engine.runs.transitions import Transition
    from conformance.model.record import Record
    from conformance.model.run import Exclusion, RunCell
    from conformance.model.run_files import Evidence, Since
    from conformance.report.ecosystem.summary import EcosystemSummary
    from conformance.report.fuzz.summary import FuzzSummary
    from conformance.report.suites.conformance_history import SuiteHistory
    from conformance.report.upgrade.file import UpgradeFile


class CauseEvidence(NamedTuple):
    """The result of triage for a root cause.

    Attributes:
        found: The evidence.
        reproduction: Text of the file that reproduces it, empty if triage made none.
    """

    found: Evidence
    reproduction: str = ""


@dataclass(frozen=True)
class Report:
    """Merged runs; if several runs have a job, the newest counts.

    Attributes:
        runs: The runs, the oldest first.
        problems: Files that could not be read and why, a sentence for each.
        upgrades: Results of the runs that were upgrades, by run id.
        since: Changes of the newest run against the nightly before it, None for none.
        evidence: Results of triage, by id of the root cause.
        conformance: Committed conformance histories, by name of the suite.
        fuzz: Campaigns of fuzzing, None for none.
        ecosystem: Outcomes of libraries, None for none.
        bench: Measurements of time and memory, None for none.
    """

    # No slots: `cached_property` keeps what pages ask for again and again in the instance's dict.

    runs: Sequence[LoadedRun]
    problems: Sequence[str] = ()
    upgrades: Mapping[str, UpgradeFile] = field(default_factory=dict)
    since: Since | None = None
    evidence: Mapping[str, CauseEvidence] = field(default_factory=dict)
    conformance: Mapping[str, SuiteHistory] = field(default_factory=dict)
    fuzz: FuzzSummary | None = None
    bench: StoredBench | None = None
    ecosystem: EcosystemSummary | None = None

    @property
    def upgrade_runs(self) -> tuple[str, ...]:
        """Ids of the runs that were upgrades, the oldest first."""
        return tuple(run.id for run in self.runs if run.id in self.upgrades)

    @property
    def not_compared(self) -> str:
        """Why the newest run was not compared with an earlier run, empty if it was."""
        return sanitize(self.runs[-1].info.not_compared) if self.runs else ""

    @property
    def exit_reason(self) -> str:
        """Reason of the exit status of a single run; several runs have no common status."""
        return sanitize(self.runs[0].info.exit_reason) if len(self.runs) == 1 else ""

    @cached_property
    def jobs(self) -> Mapping[tuple[str, str], StoredJob]:
        """Every job, by case id and cell id, in the order of the plans."""
        # The runs are the oldest first, so the newest record of a job is the one that remains.
        return {
            (record.case, record.cell): StoredJob(record, run.blobs)
            for run in self.runs
            for record in run.records
        }

    @cached_property
    def roots(self) -> frozenset[str]:
        """Folders of the projects, to which paths of files are relative."""
        return frozenset(run.info.root for run in self.runs)

    def render_traceback(self, record: Record) -> list[str]:
        """Return the traceback of a job in lines, none for a job without a traceback."""
        return render_traceback(self.jobs[record.case, record.cell], self.roots)

    def sides(self, case: str) -> list[StoredJob]:
        """Return the jobs of a case."""
        return self._sides.get(case, [])

    @cached_property
    def _sides(self) -> Mapping[str, list[StoredJob]]:
        found: dict[str, list[StoredJob]] = {}
        for (case, _), side in self.jobs.items():
            found.setdefault(case, []).append(side)
        return found

    @cached_property
    def records(self) -> tuple[Record, ...]:
        """The record of every job."""
        return tuple(side.record for side in self.jobs.values())

    @cached_property
    def causes(self) -> tuple[RootCause, ...]:
        """The root causes, the largest first; causes with the same culprit are merged."""
        evidence = {name: one.found for name, one in self.evidence.items()}
        return find_root_causes(
            (one for one in self.records if not self.is_first_seen(one)), evidence
        )

    def is_first_seen(self, record: Record) -> bool:
        """Say whether a job is new only because an upgrade ran it in a cell without goldens.

        An upgrade compares releases with each other, so jobs with neither golden nor reference
        are its subject, and nothing unexpected.

        Args:
            record: The job.
        """
        unjudged = record.verdict is Verdict.NEW and record.conformance is Conformance.UNKNOWN
        return unjudged and (record.case, record.cell) in self._tried_by_upgrades

    @cached_property
    def _tried_by_upgrades(self) -> frozenset[tuple[str, str]]:
        """Case id and cell id of the jobs whose newest record is from an upgrade."""
        newest = {(r.case, r.cell): run.id for run in self.runs for r in run.records}
        return frozenset(job for job, run in newest.items() if run in self.upgrades)

    @cached_property
    def cases(self) -> Mapping[str, RunCase]:
        """Every case that has a job, by id and in order; empty if no run describes it."""
        described = {name: case for run in self.runs for name, case in run.info.cases.items()}
        # The `run.json` of an older version of the harness does not describe its cases.
        names = sorted({case for case, _ in self.jobs})
        return {name: described.get(name, RunCase()) for name in names}

    @cached_property
    def families(self) -> Mapping[str, tuple[str, ...]]:
        """The ids of the cases of each family."""
        found: dict[str, list[str]] = {}
        for name in self.cases:
            found.setdefault(name.partition("/")[0], []).append(name)
        return {family: tuple(names) for family, names in found.items()}

    @cached_property
    def cells(self) -> tuple[RunCell, ...]:
        """The cells of all runs, in the order of the plans."""
        found = {cell.id: cell for run in self.runs for cell in run.info.cells}
        return tuple(found.values())

    def selector(self, cell: str) -> str:
        """Return the `--cell` that names a cell.

        Args:
            cell: Its id.
        """
        return selector_of(self.cells, cell)

    @cached_property
    def tracks(self) -> tuple[Track, ...]:
        """The cells of all runs, in tracks."""
        return group_tracks(self.cells)

    @cached_property
    def exclusions(self) -> tuple[Exclusion, ...]:
        """Exclusions of jobs that no run has."""
        # A job that another run did run is no longer excluded.
        found = {
            (left_out.case, left_out.cell): left_out
            for run in self.runs
            for left_out in run.info.exclusions
        }
        return tuple(left_out for key, left_out in found.items() if key not in self.jobs)

    @cached_property
    def planned_jobs(self) -> frozenset[tuple[str, str]]:
        """Case id and cell id of every job that was planned."""
        return frozenset(pair for run in self.runs for pair in run.info.plan)

    @cached_property
    def not_run(self) -> tuple[tuple[str, str], ...]:
        """Jobs that were planned and never ended: their run was killed or interrupted."""
        return tuple(sorted(self.planned_jobs - self.jobs.keys()))

    def timelines(self, case: str) -> Mapping[str, Timeline]:
        """Return the history of a case by name of each track that has a job of the case."""
        if case not in self._timelines:
            self._timelines[case] = dict(self._make_timelines(case))
        return self._timelines[case]

    def points(self) -> Iterator[tuple[str, str, Transition]]:
        """Yield every change between releases, with its case and the name of its track."""
        for case in self.cases:
            for track, history in self.timelines(case).items():
                for point in history.points:
                    yield case, track, point

    @cached_property
    def _timelines(self) -> dict[str, dict[str, Timeline]]:
        """Histories by case: every page asks for them again, and each takes comparisons."""
        return {}

    def _make_timelines(self, case: str) -> Iterator[tuple[str, Timeline]]:
        for track in self.tracks:
            jobs = [self.jobs.get((case, cell.id)) for cell in track.compared_cells]
            if any((case, cell.id) in self.jobs for cell in track.cells):
                yield track.name, make_timeline(jobs, self.cases[case])
