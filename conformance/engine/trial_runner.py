"""Trying jobs, one batch after another, as searches do: from the cache, else executed; judged."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from conformance.engine.record_judge import record_of
from conformance.engine.runner import judged_from_cache

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from conformance.engine.blobs import BlobStore
    from conformance.engine.job import Executor, Job
    from conformance.engine.record_judge import Judge
    from conformance.engine.result_cache import ResultCache
    from conformance.model.record import Record


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialRunner:
    """Tries jobs; unlike a run it confirms nothing, and keeps no order.

    Attributes:
        executor: Runs jobs.
        cache: Observations of earlier runs.
        judge: Judges by the cases' own references.
        blobs: Where artifacts go.
    """

    executor: Executor
    cache: ResultCache
    judge: Judge
    blobs: BlobStore

    def run(self, jobs: Iterable[Job], *, again: bool = False) -> Iterator[tuple[Job, Record]]:
        """Try jobs.

        Args:
            jobs: The jobs.
            again: Whether what is known from before does not count.

        Yields:
            Each job with its record, in any order.

        Raises:
            InfrastructureError: If the disk refuses.
        """
        unknown = []
        for job in jobs:
            known = None if again else judged_from_cache(job, self.cache, self.judge, self.blobs)
            if known is None:
                unknown.append(job)
            else:
                yield job, known
        for finished in self.executor.run(unknown):
            record = record_of(finished, self.blobs)
            self.cache.put(finished.job, record, self.blobs)
            yield finished.job, self.judge.judge(finished.job, record)

    def keep_confirmed(self, job: Job, record: Record, attempts: int) -> None:
        """Keep that a job did the same each time, so that nobody has to see that again.

        Args:
            job: The job.
            record: What came of it.
            attempts: How often it was tried.
        """
        self.cache.put(job, replace(record, attempts=attempts), self.blobs)
