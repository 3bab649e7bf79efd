"""Jobs of any executor with their values, for callers that make no records."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from conformance.engine.job import FinishedJob, RecordedJob
from conformance.engine.record_judge import adopt_artifacts
from conformance.model.value import decode_value

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Mapping

    from conformance.engine.cache.blobs import BlobStore
    from conformance.engine.job import Executor, Job

VALUE = "value"
"""Name of the artifact with the value of a job."""


class FinishedJobExecutor:
    """An executor that reads the jobs which another executor ran on other hosts.

    Args:
        executor: The other executor.
        blobs: Receives the artifacts of its jobs.
    """

    def __init__(self, executor: Executor, blobs: BlobStore) -> None:
        self._executor = executor
        self._blobs = blobs

    @property
    def identities(self) -> Mapping[str, Mapping[str, Any]]:
        """See `Executor.identities`."""
        return self._executor.identities

    def run(self, jobs: Iterable[Job]) -> Generator[FinishedJob]:
        """Run jobs and yield each as it ends; see `Executor.run`.

        Raises:
            CorruptBlobError: If an artifact is missing or damaged.
            InfrastructureError: If the disk refuses, or no job can run.
        """
        with contextlib.closing(self._executor.run(jobs)) as ended:
            for one in ended:
                yield self._read(one) if isinstance(one, RecordedJob) else one

    def _read(self, recorded: RecordedJob) -> FinishedJob:
        adopt_artifacts(recorded, self._blobs)
        record = recorded.record
        blobs = {name: self._blobs.get(digest) for name, digest in record.artifacts.items()}
        return FinishedJob(
            job=recorded.job, outcome=record.outcome, stage=record.stage,
            error=record.error, blobs=blobs,
            values={VALUE: decode_value(blobs[VALUE])} if VALUE in blobs else {},
            notes=record.notes,
        )  # fmt: skip
