"""Where drafts of a case are tried: cells of every release, and the files they are written to."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from conformance.corpus.discover import discover
from conformance.engine.job import Job
from conformance.engine.job_comparison import StoredJob
from conformance.engine.job_runner import judged_from_cache
from conformance.engine.plan import why_not
from conformance.engine.record_judge import Judge, record_of
from conformance.model.outcome import Verdict
from conformance.search.prober import not_run

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from conformance.engine.blobs import BlobStore
    from conformance.engine.job import Executor, PlannedCell
    from conformance.engine.result_cache import ResultCache
    from conformance.model.case import Case
    from conformance.model.record import Record


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """Cells in which cases are tried.

    Attributes:
        cells: One for each release, oldest first.
        executor: Runs jobs.
        cache: Observations of earlier runs.
        blobs: Where artifacts go.
        width: Probes at the same time.
    """

    cells: Sequence[PlannedCell]
    executor: Executor
    cache: ResultCache
    blobs: BlobStore
    width: int

    @property
    def releases(self) -> list[str]:
        """The releases."""
        return [planned.release for planned in self.cells]

    def run(
        self, cases: Sequence[Case], numbers: Iterable[int], *, again: bool = False
    ) -> dict[str, dict[int, Record]]:
        """Run cases in some cells.

        Args:
            cases: The cases.
            numbers: Numbers of the cells.
            again: Whether what is known from before does not count.

        Returns:
            The judged records, by name of the case and number of the cell.
        """
        places = {self.cells[number].cell.id: number for number in numbers}
        found: dict[str, dict[int, Record]] = {case.name: {} for case in cases}
        names = {case.id: case.name for case in cases}
        for record in self._records(cases, list(places.values()), again=again):
            found[names[record.case]][places[record.cell]] = record
        return found

    def _records(
        self, cases: Sequence[Case], numbers: Sequence[int], *, again: bool
    ) -> Iterator[Record]:
        judge, jobs = Judge(self.blobs), []
        for planned in (self.cells[number] for number in numbers):
            for case in cases:
                job = Job(case=case, planned=planned, alone=again)
                if reason := why_not(case, planned):
                    left_out = not_run(case.id, case.content_hash, planned, reason)
                    yield replace(left_out, verdict=Verdict.EXCLUDED)
                elif not again and (known := judged_from_cache(job, self.cache, judge, self.blobs)):
                    yield known
                else:
                    jobs.append(job)
        for finished in self.executor.run(jobs):
            record = record_of(finished, self.blobs)
            self.cache.put(finished.job, record, self.blobs)
            yield judge.judge(finished.job, record)

    def side(self, record: Record) -> StoredJob:
        """Return a record with its artifacts."""
        return StoredJob(record, self.blobs)


def written_cases(file: Path, text: str) -> Mapping[str, Case]:
    """Write a file of cases, and return them by name.

    Args:
        file: Where to, for as long as they are tried.
        text: What it holds.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return {case.name: case for case in discover([file])}
