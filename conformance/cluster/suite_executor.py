"""The executor that runs tests of suites on a Dask cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from conformance.cluster.executor import DaskExecutor
from conformance.cluster.suite_batch import SuiteSpec

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Mapping

    from conformance.cells.lock import Lock
    from conformance.cluster.options import ClusterOptions
    from conformance.engine.job import FinishedJob, Job, RecordedJob
    from conformance.suites.running.executor import CollectedSuite


class DaskSuiteExecutor:
    """Runs tests that this host has collected on the workers of a Dask cluster.

    Args:
        options: The options.
        locks: Lock of each cell, by cell id; may grow.
        suites: Suites whose tests are run.
    """

    def __init__(
        self,
        options: ClusterOptions,
        locks: Mapping[str, Lock],
        suites: Iterable[CollectedSuite],
    ) -> None:
        self._suites = {collected.suite.hash: collected for collected in suites}
        self._specs: dict[tuple[str, str], SuiteSpec] = {}
        self._executor = DaskExecutor(options, locks, self._estimate, describe=self._describe)

    @property
    def identities(self) -> Mapping[str, Mapping[str, Any]]:
        """The facts that the sessions of each cell report."""
        return self._executor.identities

    def run(self, jobs: Iterable[Job]) -> Generator[FinishedJob | RecordedJob]:
        """Run tests and yield each as it ends; see `Executor.run`."""
        # The sessions that collected the tests on this host have no more to do.
        self.close()
        try:
            for finished in self._executor.run(jobs):
                self._suites[finished.job.case.content_hash].timings.learn(finished)
                yield finished
        finally:
            for collected in self._suites.values():
                collected.timings.save()

    def close(self) -> None:
        """End the sessions on this host that have collected the tests."""
        for collected in self._suites.values():
            while collected.pools:
                collected.pools.popitem()[1].close()

    def _estimate(self, job: Job) -> float:
        return self._suites[job.case.content_hash].timings.estimate(job)

    def _describe(self, job: Job) -> SuiteSpec:
        # Made once: it has the name of every test.
        key = (job.case.content_hash, job.planned.cell.id)
        if key not in self._specs:
            self._specs[key] = SuiteSpec.of(self._suites[key[0]], key[1])
        return self._specs[key]
