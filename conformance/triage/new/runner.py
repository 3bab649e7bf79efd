"""Cells of every release, in which drafts of a case are run, and the files they are written to."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from conformance.corpus.discovery import discover
from conformance.engine.job import Job
from conformance.engine.job_comparison import StoredJob, load_value
from conformance.engine.plan import why_not
from conformance.model.outcome import Verdict
from conformance.search.prober import not_run

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from conformance.engine.job import PlannedCell
    from conformance.engine.job_runner import JobRunner
    from conformance.model.case import Case
    from conformance.model.record import Record
    from conformance.model.value import Value


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseRunner:
    """Runs cases in cells.

    Attributes:
        cells: One for each release, oldest first.
        job_runner: Runs jobs.
        width: Jobs at the same time.
    """

    cells: Sequence[PlannedCell]
    job_runner: JobRunner
    width: int

    @property
    def releases(self) -> list[str]:
        """The releases."""
        return [planned.release for planned in self.cells]

    def run(self, cases: Sequence[Case], numbers: Iterable[int]) -> dict[str, dict[int, Record]]:
        """Run cases in some cells.

        Args:
            cases: The cases.
            numbers: Numbers of the cells.

        Returns:
            The judged records, by name of the case and number of the cell.
        """
        found: dict[str, dict[int, Record]] = {case.name: {} for case in cases}
        jobs: dict[tuple[str, str], tuple[Job, int]] = {}
        for number in numbers:
            for case in cases:
                planned = self.cells[number]
                if reason := why_not(case, planned):
                    record = not_run(case.id, case.content_hash, planned, reason)
                    found[case.name][number] = replace(record, verdict=Verdict.EXCLUDED)
                else:
                    job = Job(case=case, planned=planned)
                    jobs[job.id] = job, number
        for job, record in self.job_runner.run(job for job, _ in jobs.values()):
            found[job.case.name][jobs[job.id][1]] = record
        return found

    def value(self, record: Record) -> Value:
        """Return the value that a job observed."""
        return load_value(StoredJob(record, self.job_runner.blobs))


def write_cases(file: Path, text: str) -> Mapping[str, Case]:
    """Write a file of cases, and return them by name.

    Args:
        file: The file, for as long as they are tried.
        text: What it holds.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return {case.name: case for case in discover([file])}
