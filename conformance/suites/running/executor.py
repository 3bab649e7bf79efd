"""Collecting suites in cells and running their tests: jobs of the scheduler that runs cases."""

from __future__ import annotations

from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from conformance.engine.scheduler import CellQueue, JobUnits, schedule
from conformance.suites.running.worker_pool import SuiteWorkerPool

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Mapping, Sequence

    from conformance.cells.accelerators import DeviceLock
    from conformance.engine.job import FinishedJob, Job, PlannedCell
    from conformance.suites.running.cells import SuiteCells
    from conformance.suites.running.collection import Collection
    from conformance.suites.running.collection_cache import CollectionCache, TestTimings
    from conformance.suites.suite import Suite

PIECES: Final = 8
"""Pieces of a divided file that make up a worker's share of all tests."""
LARGE: Final = 0.5
"""Part of a worker's share of all tests above which a file is divided, if that is safe."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectedSuite:
    """A suite that is collected in some cells.

    Attributes:
        suite: Suite that is collected.
        cells: Provides environments.
        project: The collection with the folder that the node ids of all cells start from.
        collections: The collection of each cell, by cell id.
        pools: Pools that have collected and are not used by a run yet, by cell id.
        timings: Durations of the tests in earlier runs.
    """

    suite: Suite
    cells: SuiteCells
    project: Collection
    collections: Mapping[str, Collection]
    pools: dict[str, SuiteWorkerPool]
    timings: TestTimings


def collect_suite(
    suite: Suite, planned: Iterable[PlannedCell], *, cells: SuiteCells, cache: CollectionCache,
    slots: int, devices: DeviceLock,
) -> list[SuiteWorkerPool]:  # fmt: skip
    """Collect a suite in cells, unless an earlier collection is still valid.

    Args:
        suite: Suite to collect.
        planned: Cells to collect it in.
        cells: Provides environments.
        cache: Earlier collections.
        slots: Sessions at the same time.
        devices: Lock of the accelerators of this host.

    Returns:
        The pool of each cell, with its collection.

    Raises:
        InfrastructureError: If the disk refuses.
    """
    pools, new = [], []
    for cell in planned:
        before = cache.load(suite, cell)
        pools.append(SuiteWorkerPool(suite, cell, cells, devices, before))
        if before is None:
            new.append(pools[-1])

    def collect(pool: SuiteWorkerPool) -> None:
        # Saved at once: an interrupt loses only the collections that are not complete.
        cache.save(suite, pool.planned, pool.collect())

    # Slots without work collect as well: where workers cannot be forked, each has to.
    spare = slots // len(new) - 1 if new else 0
    with ThreadPoolExecutor(slots) as threads:
        try:
            found = [threads.submit(collect, pool) for pool in new]
            for pool in new:
                if not pool.planned.cell.place.real and not cache.has_forked(suite, pool.planned):
                    for _ in range(spare):
                        threads.submit(pool.add_session)
            for future in found:
                future.result()
        except BaseException:
            for pool in pools:
                pool.interrupt()
            raise
    return pools


class SuiteExecutor:
    """Runs tests of suites.

    Args:
        suites: Suites whose tests are run.
        slots: Workers at the same time.
        devices: Lock of the accelerators of this host.
    """

    def __init__(
        self, suites: Iterable[CollectedSuite], *, slots: int, devices: DeviceLock
    ) -> None:
        self._suites = {collected.suite.hash: collected for collected in suites}
        self._slots, self._devices = slots, devices
        # A cell whose results are all cached starts no session that could report them.
        self._identities: dict[str, dict[str, Any]] = {
            pool.planned.cell.id: {"versions": dict(pool.planned.versions), **pool.collection.facts}
            for collected in self._suites.values()
            for pool in collected.pools.values()
            if pool.collection.facts
        }

    @property
    def identities(self) -> Mapping[str, Mapping[str, Any]]:
        """The facts that the sessions of each cell report; of several suites, those of the last."""
        return self._identities

    def run(self, jobs: Iterable[Job]) -> Generator[FinishedJob]:
        """Run tests and yield each as it ends; see `Executor.run`."""
        cells: dict[tuple[str, str], list[Job]] = defaultdict(list)
        for job in jobs:
            cells[job.case.content_hash, job.planned.cell.id].append(job)
        share = max(1, self._slots // max(1, len(cells)))
        queues = [self._make_queue(self._suites[key[0]], own, share) for key, own in cells.items()]
        slots = min(self._slots, sum(len(queue.units) for queue in queues))
        try:
            for finished in schedule(queues, slots):
                self._suites[finished.job.case.content_hash].timings.learn(finished)
                yield finished
        finally:
            self.close()
            for collected in self._suites.values():
                collected.timings.save()

    def _make_queue(self, collected: CollectedSuite, jobs: Sequence[Job], share: int) -> CellQueue:
        """Return the tests of a suite in one cell, with the workers that run them."""
        planned = jobs[0].planned
        # An accelerator admits one worker at a time.
        share = 1 if planned.cell.place.real else share
        # A second run of the same tests, e.g. of those that failed, needs a new pool.
        pool = collected.pools.pop(planned.cell.id, None) or SuiteWorkerPool(
            collected.suite, planned, collected.cells, self._devices,
            collected.collections.get(planned.cell.id),
        )  # fmt: skip
        pool.assign(jobs, share=share, project=collected.project, identities=self._identities)
        units = divide_tests(
            jobs, share, {test.name: test.bound for test in pool.collection.tests},
            collected.timings.estimate, intact=not collected.suite.definition.divide,
        )  # fmt: skip
        return CellQueue(pool, JobUnits(units))

    def close(self) -> None:
        """End the sessions that wait to run tests, if none is to be run after all."""
        for collected in self._suites.values():
            while collected.pools:
                collected.pools.popitem()[1].close()


def divide_tests(
    jobs: Sequence[Job],
    workers: int,
    bounds: Mapping[str, str],
    weigh: Callable[[Job], float],
    *,
    intact: bool = False,
) -> list[list[Job]]:
    """Divide tests of a cell into units, each of which one worker runs in a row.

    The tests of a file stay together, and in their order. One worker runs all as pytest would.
    For several workers the longest units come first, and a file that is a large part of all is
    divided: tests that share a fixture, according to its scope, still stay together.

    Args:
        jobs: The tests, in the order they were collected.
        workers: Workers at the same time.
        bounds: Widest scope of the fixtures of each test, by its name.
        weigh: Returns the duration of a test in seconds.
        intact: Whether no file is divided: its tests may depend on those before them.
    """
    files: dict[object, list[Job]] = defaultdict(list)
    # A fixture of a package is set up once for all files of the package.
    packages = {
        job.case.file.parent for job in jobs if bounds.get(job.case.name, "module") == "package"
    }
    for job in jobs:
        package = next((folder for folder in job.case.file.parents if folder in packages), None)
        files[package or job.case.file].append(job)
    if workers == 1:
        return list(files.values())
    share = sum(map(weigh, jobs)) / workers
    units = []
    for key, own in files.items():
        fits = sum(map(weigh, own)) <= LARGE * share
        divided = not (intact or fits or key in packages)
        units += _divide_file(own, share / PIECES, bounds, weigh) if divided else [own]
    # A long unit that starts last would keep one worker busy after the others have ended.
    return sorted(units, key=lambda unit: -sum(map(weigh, unit)))


def _divide_file(
    jobs: Iterable[Job], size: float, bounds: Mapping[str, str], weigh: Callable[[Job], float]
) -> list[list[Job]]:
    """Divide a file into pieces of about a size, where nothing binds its tests."""
    pieces: list[list[Job]] = []
    filled, before = 0.0, ""
    for atom in _group_bound(jobs, bounds):
        weight = sum(map(weigh, atom))
        function = _find_function(atom[0])
        # A function that does not fit begins a piece: its programs are compiled once only.
        room = size if function == before else size / 2
        if not pieces or filled + weight > room:
            pieces.append([])
            filled = 0.0
        pieces[-1] += atom
        filled += weight
        before = function
    return pieces


def _group_bound(jobs: Iterable[Job], bounds: Mapping[str, str]) -> Iterable[list[Job]]:
    """Group the tests that must run in one process because they share a fixture."""
    atoms: dict[object, list[Job]] = defaultdict(list)
    for job in jobs:
        function = _find_function(job)
        match bounds.get(job.case.name, "module"):
            case "function":
                key: object = job.id
            case "class" if "::" in function.partition("::")[2]:
                key = function.rpartition("::")[0]
            case _:
                key = None
        atoms[key].append(job)
    return atoms.values()


def _find_function(job: Job) -> str:
    return job.case.name.partition("[")[0]
