"""The executor of suites: their tests are jobs of the scheduler that runs cases, too."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from conformance.engine.scheduler import CellQueue, JobUnits, schedule
from conformance.suites.running.units import divide
from conformance.suites.running.worker_pool import SuiteWorkerPool

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Mapping, Sequence

    from conformance.cells.accelerators import DeviceLock
    from conformance.engine.job import Finished, Job
    from conformance.suites.running.collecting import CollectedSuite


class SuiteExecutor:
    """Runs tests of suites.

    Args:
        suites: The suites.
        slots: Workers at the same time.
        turns: Whose turn it is on the accelerators of this host.
    """

    def __init__(self, suites: Iterable[CollectedSuite], *, slots: int, turns: DeviceLock) -> None:
        self._suites = {one.suite.hash: one for one in suites}
        self._slots, self._turns = slots, turns
        # A cell in which nothing is run again is what it was.
        self._identities: dict[str, dict[str, Any]] = {
            planned.cell.id: {"versions": dict(planned.versions), **found.told}
            for one in self._suites.values()
            for planned, found in one.collections
            if found.told
        }

    @property
    def identities(self) -> Mapping[str, Mapping[str, Any]]:
        """The identity of each cell as its sessions report it; of several suites the last one's."""
        return self._identities

    def run(self, jobs: Iterable[Job]) -> Generator[Finished]:
        """Run tests and yield each as it ends; see `Executor.run`."""
        cells: dict[tuple[str, str], list[Job]] = {}
        for job in jobs:
            cells.setdefault((job.case.content_hash, job.planned.cell.id), []).append(job)
        share = max(1, self._slots // max(1, len(cells)))
        queues = [self._queue(self._suites[suite], own, share) for (suite, _), own in cells.items()]
        slots = min(self._slots, sum(len(queue.units) for queue in queues))
        try:
            for finished in schedule(queues, slots):
                self._suites[finished.job.case.content_hash].timings.learn(finished)
                yield finished
        finally:
            self.close()
            for one in self._suites.values():
                one.timings.keep()

    def _queue(self, one: CollectedSuite, jobs: Sequence[Job], share: int) -> CellQueue:
        """Return the tests of a suite in one cell."""
        planned = jobs[0].planned
        number = 1 if planned.cell.place.real else share
        bounds = one.bounds(planned)
        pool = SuiteWorkerPool(
            planned, one, jobs, share=number, turns=self._turns, identities=self._identities
        )
        units = divide(jobs, number, bounds, one.timings.of, intact=not one.suite.divide)
        return CellQueue(pool, JobUnits(units))

    def close(self) -> None:
        """End the sessions that wait to run tests, if none is to be run after all."""
        for one in self._suites.values():
            one.sessions.close()
