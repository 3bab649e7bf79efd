"""A session: everything that runs jobs in the cells of a project, composed in one place."""

from __future__ import annotations

import importlib
import os
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

from conformance.app.durations import load_durations
from conformance.cache_folder import SHARED_URL, SHARED_WRITE
from conformance.cells.accelerators import DeviceLock
from conformance.cells.requirements import build_requirement
from conformance.engine.cache.blobs import open_shared_cache
from conformance.engine.cache.results import ResultCache, hash_host, hash_kit
from conformance.engine.calibration import load_calibration
from conformance.engine.job_runner import JobRunner
from conformance.engine.local_executor import LocalExecutor
from conformance.engine.record_judge import Judge
from conformance.engine.runner import Run
from conformance.engine.workers.preparation import Provider, plan_recorded_cells, prepare_cells
from conformance.engine.workers.warm import WarmExecutor, WarmWorkers
from conformance.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from conformance.app.cluster_choice import ClusterChoice
    from conformance.app.context import ProjectContext
    from conformance.cells.cell import Cell
    from conformance.cells.lock import Lock
    from conformance.cluster.options import ClusterOptions
    from conformance.cluster.suite_executor import DaskSuiteExecutor
    from conformance.engine.cache.blobs import BlobStore
    from conformance.engine.cache.remote_results import RemoteResults
    from conformance.engine.job import Executor, PlannedCell
    from conformance.engine.local_executor import OpenWorker
    from conformance.engine.plan import Plan
    from conformance.engine.runs.directory import RunDirectory
    from conformance.engine.workers.preparation import Preparation
    from conformance.errors import ConformanceError
    from conformance.remote_cache.location import CacheLocation
    from conformance.suites.running.executor import CollectedSuite

CACHE_LOCATION: Final = "conformance.remote_cache.location"
REMOTE_RESULTS: Final = "conformance.engine.cache.remote_results"
"""Imported late, like the location: most runs have no shared cache."""


IDLE_MEMORY: Final = 4 * 2**30
"""Bytes of idle workers that stay open."""
IDLE_SECONDS: Final = 1800.0
"""Seconds after which an idle worker is closed."""
CLUSTER_NODES: Final = "conformance.cluster.nodes"
CLUSTER_EXECUTOR: Final = "conformance.cluster.executor"
CLUSTER_OPTIONS: Final = "conformance.cluster.options"
CLUSTER_SUITE_EXECUTOR: Final = "conformance.cluster.suite_executor"


@dataclass(frozen=True, kw_only=True)
class Session:
    """Composes locks, workers, executor, result cache and judge of one command.

    Example:
        >>> context = load_context()
        >>> session = Session(context=context)
        >>> cells, _ = context.select_cells(None, ["0.6.2"])
        >>> preparation = session.prepare(cells)
        >>> cases = context.select_cases(["prng"])
        >>> plan = make_plan(cases, preparation.cells, preparation.exclusions)
        >>> directory = context.runs.allocate()
        >>> records = session.make_run(plan, directory, preparation.locks).execute()

    Attributes:
        context: The project: cases, releases, cells, cache folder.
        fresh: Whether results of earlier runs are ignored.
        spawn: Whether each job gets a fresh interpreter instead of a fork.
        require_platform: Whether a missing accelerator is a fault of the host.
        results_folder: Folder of the result cache, None for the cache folder of the project.
        cluster: Cluster that runs the jobs, None for this host.
    """

    context: ProjectContext
    fresh: bool = False
    spawn: bool = False
    require_platform: bool = False
    results_folder: Path | None = None
    cluster: ClusterChoice | None = None

    @cached_property
    def results(self) -> ResultCache:
        """Results of earlier runs."""
        folder = self.results_folder or self.context.cache
        # `--spawn` asks for fresh interpreters; a cached result came from a fork.
        fresh = self.fresh or self.spawn
        return ResultCache(
            folder, fresh=fresh, remote=self._open_remote(folder), host_hash=self._host_hash
        )

    @cached_property
    def _host_hash(self) -> str:
        """Hash of the facts of the host that runs the jobs: a result of another host is none."""
        if self.cluster is None or not self.cluster.scheduler:
            return hash_host()
        found: str = importlib.import_module(CLUSTER_NODES).find_host_hash(self.cluster.scheduler)
        return found

    @cached_property
    def shared_cache(self) -> CacheLocation | None:
        """The location of the shared cache, None for none.

        Raises:
            UsageError: If its URL is malformed or contains credentials.
        """
        setting = self.context.settings.cache
        if not setting and os.environ.keys().isdisjoint((SHARED_URL, SHARED_WRITE)):
            return None
        location: CacheLocation | None = importlib.import_module(CACHE_LOCATION).find_location(
            setting, os.environ
        )
        return location

    def _open_remote(self, folder: Path) -> RemoteResults | None:
        """Return the results of the shared cache, None if none is configured."""
        if self.shared_cache is None:
            return None
        remote = open_shared_cache(*self.shared_cache)
        results: RemoteResults = importlib.import_module(REMOTE_RESULTS).RemoteResults(
            remote, folder, kit_hash=hash_kit(), host_hash=self._host_hash
        )
        return results

    @cached_property
    def device_lock(self) -> DeviceLock:
        """The lock by which one job at a time uses each accelerator of this host."""
        return DeviceLock(self.context.cache)

    def build_requirements(self, wanted: Iterable[str]) -> tuple[str, ...]:
        """Return requirements in addition to the packages of the cells; folders are built.

        Args:
            wanted: Requirements, wheels, and folders of packages, which are built now. If empty,
                the requirements in the project's settings count.
        """
        texts = tuple(wanted) or self.context.settings.wanted
        return tuple(build_requirement(text, self.context.cache) for text in texts)

    def prepare(
        self, cells: Iterable[Cell], wanted: Iterable[str] = (), *, download: bool = True
    ) -> Preparation:
        """Look up the locks and interpreters of cells.

        Args:
            cells: The cells.
            wanted: See `build_requirements`.
            download: Whether uv may download a missing Python.

        Returns:
            The planned cells, see `conformance.engine.workers.preparation.prepare_cells`.
        """
        context = self.context
        return prepare_cells(
            cells, context.releases, folders=context.matrix_folders, cache=context.cache,
            wanted=self.build_requirements(wanted), passed=context.passed_variables,
            download=download, elsewhere=self.cluster is not None and self.cluster.scheduler != "",
        )  # fmt: skip

    def prepare_cell(
        self,
        cell: Cell,
        wanted: Iterable[str] = (),
        *,
        refuse: type[ConformanceError] = UsageError,
    ) -> tuple[PlannedCell, Mapping[str, Lock]]:
        """Look up the lock and the interpreter of one cell.

        Args:
            cell: The cell.
            wanted: See `build_requirements`.
            refuse: The error that is raised if the cell cannot be installed.

        Returns:
            The cell, and its lock by its id.
        """
        preparation = self.prepare([cell], wanted)
        for exclusion in preparation.exclusions:
            # The caller named this cell, so it cannot be left out as in a run.
            raise refuse(f"{cell.id}: {exclusion.reason}")
        (planned,) = preparation.cells
        return planned, preparation.locks

    def plan_recorded(self, cells: Iterable[Cell]) -> tuple[PlannedCell, ...]:
        """Return cells as in goldens, the same on every host.

        Args:
            cells: The cells.
        """
        context = self.context
        # Without interpreters: whether this host has a Python must not change a page of goldens.
        return plan_recorded_cells(
            cells, context.releases, folders=context.matrix_folders, cache=context.cache
        )

    def make_opener(self, locks: Mapping[str, Lock]) -> OpenWorker:
        """Return a function that opens a worker of a cell.

        Args:
            locks: Lock of each cell, by cell id; may grow.
        """
        return Provider(
            locks, self.context.cache, spawn=self.spawn, require_platform=self.require_platform
        ).open

    def make_executor(self, locks: Mapping[str, Lock], *, slots: int = 1) -> Executor:
        """Return an executor of jobs, on this host or on the cluster.

        Args:
            locks: Lock of each cell, by cell id; may grow.
            slots: Jobs at the same time.
        """
        if self.cluster is not None:
            estimate = load_durations(self.context).estimate
            # Imported late: without a cluster nothing of Dask is loaded.
            module = importlib.import_module(CLUSTER_EXECUTOR)
            executor: Executor = module.DaskExecutor(
                self._make_cluster_options(self.cluster, slots), locks, estimate
            )
            return executor
        return LocalExecutor(self.make_opener(locks), slots=slots, device_lock=self.device_lock)

    def make_warm_executor(
        self, locks: Mapping[str, Lock], *, slots: int = 1, memory: int = IDLE_MEMORY
    ) -> WarmExecutor:
        """Return an executor on this host whose workers stay open until it is closed.

        Args:
            locks: Lock of each cell, by cell id; may grow.
            slots: Jobs at the same time.
            memory: Bytes of idle workers that stay open.
        """
        return WarmExecutor(
            self.make_opener(locks), slots=slots, device_lock=self.device_lock,
            workers=WarmWorkers(memory, IDLE_SECONDS),
        )  # fmt: skip

    def make_cluster_suite_executor(
        self, suites: Sequence[CollectedSuite], locks: Mapping[str, Lock], *, slots: int
    ) -> DaskSuiteExecutor:
        """Return an executor of collected tests on the cluster of the session.

        Args:
            suites: Suites whose tests are run.
            locks: Lock of each cell, by cell id; may grow.
            slots: Sessions at the same time in a cluster on this host.
        """
        assert self.cluster is not None  # noqa: S101 - the caller has one
        options = self._make_cluster_options(self.cluster, slots)
        module = importlib.import_module(CLUSTER_SUITE_EXECUTOR)
        executor: DaskSuiteExecutor = module.DaskSuiteExecutor(options, locks, suites)
        return executor

    def _make_cluster_options(self, cluster: ClusterChoice, slots: int) -> ClusterOptions:
        options: ClusterOptions = importlib.import_module(CLUSTER_OPTIONS).ClusterOptions(
            scheduler=cluster.scheduler, slots=slots, cache=self.context.cache,
            shared_cache=self.shared_cache.url if self.shared_cache and self.shared_cache.write
            else "",
            spawn=self.spawn, require_platform=self.require_platform, host_hash=self._host_hash,
        )  # fmt: skip
        return options

    def make_judge(self, blobs: BlobStore) -> Judge:
        """Return a judge of records, by the goldens next to the cases.

        Args:
            blobs: The store with the artifacts of the records.
        """
        return Judge(blobs)

    def make_job_runner(self, executor: Executor, blobs: BlobStore) -> JobRunner:
        """Return a runner that recalls or executes jobs, and judges them.

        Args:
            executor: Runs jobs.
            blobs: The store that receives artifacts.
        """
        return JobRunner(
            executor=executor, cache=self.results, judge=self.make_judge(blobs), blobs=blobs
        )

    def make_run(
        self, plan: Plan, directory: RunDirectory, locks: Mapping[str, Lock], *, slots: int = 1
    ) -> Run:
        """Return a run of a plan, to be executed.

        Args:
            plan: Jobs to run.
            directory: Directory of the run.
            locks: Lock of each cell, by cell id.
            slots: Jobs at the same time.
        """
        return Run(
            plan=plan, directory=directory, executor=self.make_executor(locks, slots=slots),
            cache=self.results, judge=self.make_judge(directory.blobs),
            # Searches run without it: they detect a flaky job by comparing attempts.
            calibration=load_calibration(self.context.cache),
        )  # fmt: skip
