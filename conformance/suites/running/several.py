"""Several suites in one run: each test is run by the executor of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Mapping

    from conformance.engine.job import Finished, Job
    from conformance.suites.running.executor import SuiteExecutor


class Several:
    """Executors of several suites, as one.

    Args:
        executors: Executor of each suite, by the hash of the suite.
    """

    def __init__(self, executors: Mapping[str, SuiteExecutor]) -> None:
        self._executors = executors

    @property
    def identities(self) -> Mapping[str, Mapping[str, Any]]:
        """What the sessions said they are, by cell id; of several suites what the last one saw."""
        found: dict[str, Mapping[str, Any]] = {}
        for executor in self._executors.values():
            found.update(executor.identities)
        return found

    def close(self) -> None:
        """End what waits to run tests, where none is to be run after all."""
        for executor in self._executors.values():
            executor.close()

    def run(self, jobs: Iterable[Job]) -> Generator[Finished]:
        """Run tests and yield each as it ends, one suite after another; see `Executor.run`."""
        parts: dict[str, list[Job]] = {suite: [] for suite in self._executors}
        for job in jobs:
            parts[job.case.content_hash].append(job)
        for suite, own in parts.items():
            if own:
                yield from self._executors[suite].run(own)
