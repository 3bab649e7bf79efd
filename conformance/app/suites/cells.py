"""A pytest suite in cells: its locks, tests and executor, and the watch on its files."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Final

from conformance.app.lifetime import hold_until_end
from conformance.app.output_files import print_note
from conformance.app.session import Session
from conformance.cells.interpreter_inspection import inspect_path_environment
from conformance.cells.requirements import parse_requirement
from conformance.engine.workers.preparation import Preparation
from conformance.errors import InfrastructureError, NothingSelectedError, UsageError
from conformance.report.text import join_names
from conformance.suites.catalogue.checkouts import Checkouts, inspect_own_checkout
from conformance.suites.catalogue.standards import CLAIMED
from conformance.suites.files import compare_scans
from conformance.suites.known.deviations import reject_unknown_tests
from conformance.suites.running.cells import SuiteCells
from conformance.suites.running.collection_cache import CollectionCache, TestTimings
from conformance.suites.running.executor import CollectedSuite, SuiteExecutor, collect_suite

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from conformance.app.cluster_choice import ClusterChoice
    from conformance.app.context import ProjectContext
    from conformance.cells.cell import Cell
    from conformance.cells.lock import Lock
    from conformance.cluster.suite_executor import DaskSuiteExecutor
    from conformance.engine.job import PlannedCell
    from conformance.model.case import Case
    from conformance.suites.catalogue.checkouts import Checkout
    from conformance.suites.catalogue.definition import NamedSuite
    from conformance.suites.files import FileChanges
    from conformance.suites.running.collection import Collection
    from conformance.suites.running.worker_pool import SuiteWorkerPool
    from conformance.suites.suite import Suite

    AnySuiteExecutor = SuiteExecutor | DaskSuiteExecutor


@contextmanager
def watch_files(suite: Suite, context: ProjectContext) -> Iterator[None]:
    """Hold a suite's checkout while it is used, and report the changes that its tests leave.

    A checkout in the cache is then restored; the user's own files are left unchanged.

    Args:
        suite: The suite.
        context: The project.

    Raises:
        InfrastructureError: If the disk refuses.
    """
    checkouts = Checkouts(context.cache, print_note)
    held = nullcontext() if suite.checkout is None else checkouts.hold(suite.checkout)
    # Before pytest starts: even a collection may write files.
    before = suite.scan_files()
    try:
        with held:
            yield
    finally:
        # In `finally`: an interrupted run leaves files behind, too, and more often.
        if traces := compare_scans(before, suite.scan_files()):
            note = f"its folder is not as it was before the run: {_describe_traces(traces, suite)}"
            print_note(f"{suite.name}: {note}{_undo(suite, checkouts)}")


def _undo(suite: Suite, checkouts: Checkouts) -> str:
    """Restore a checkout that the harness owns, and describe the result for the message."""
    if suite.checkout is None or suite.checkout.own:
        return ""
    tidy = checkouts.restore(suite.checkout)
    return "; that is undone" if tidy else "; the next run undoes that"


def _describe_traces(changes: FileChanges, suite: Suite) -> str:
    parts = (("added", changes.added), ("changed", changes.changed), ("removed", changes.removed))
    return ", ".join(
        f"{how} {join_names([os.path.relpath(path, suite.root) for path in paths])}"
        for how, paths in parts if paths
    )  # fmt: skip


PYTEST: Final = "pytest"
"""The requirement that every cell of a suite has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteHome:
    """The location of named suites: definitions in the project, files in the cache.

    Attributes:
        context: The project.
        path: The user's own checkout, None for the checkout in the cache.
    """

    context: ProjectContext
    path: Path | None = None

    @property
    def folder(self) -> Path:
        """Folder with a folder for each suite."""
        return self.context.project.suites

    def checkout(self, suite: NamedSuite) -> Checkout:
        """Return the checkout of a suite, fetched if it is missing."""
        if self.path is not None:
            return inspect_own_checkout(self.path.expanduser(), suite)
        return Checkouts(self.context.cache, print_note).get(suite)


def resolve_suite_requirements(
    context: ProjectContext, wanted: Iterable[str], suite: Suite | None = None
) -> tuple[str, ...]:
    """Return the requirements of a suite in addition to the packages of its cells.

    Args:
        context: The project.
        wanted: Requirements of the user; pytest is added unless they name it.
        suite: The suite, whose own requirements are added unless the user names them.
    """
    own = Session(context=context).build_requirements(wanted)
    # By name: a version that the user names must not meet a second requirement of the package.
    named = {parse_requirement(text).name for text in own}
    more = (*(() if suite is None else suite.definition.requires), PYTEST)
    return (*own, *(text for text in more if parse_requirement(text).name not in named))


def prepare_suite(
    context: ProjectContext, cells: Iterable[Cell], wanted: Sequence[str]
) -> Preparation:
    """Look up the locks and interpreters of cells, each with pytest.

    Args:
        context: The project.
        cells: Cells to look up.
        wanted: Requirements in addition to the packages of the cells. The pytest of a user's
            environment is used, unless a version of pytest is required.
    """
    chosen = tuple(cells)
    with_pytest = {cell for cell in chosen if PYTEST in wanted and _has_pytest(cell)}
    # A second pytest next to the installed one would miss the plugins that are pinned to that.
    others = [text for text in wanted if text != PYTEST]
    parts = [
        Session(context=context).prepare(
            [cell for cell in chosen if cell not in with_pytest], wanted
        ),
        Session(context=context).prepare([cell for cell in chosen if cell in with_pytest], others),
    ]
    # Two look-ups, but the cells in the order of the matrix, in which reports show them.
    order = {cell.id: number for number, cell in enumerate(chosen)}
    planned = [one for part in parts for one in part.cells]
    return Preparation(
        cells=tuple(sorted(planned, key=lambda one: order[one.cell.id])),
        exclusions=tuple(one for part in parts for one in part.exclusions),
        locks={cell: lock for part in parts for cell, lock in part.locks.items()},
    )


def _has_pytest(cell: Cell) -> bool:
    """Return whether a cell is a user's environment with pytest installed."""
    return cell.interpreter is not None and (
        PYTEST in inspect_path_environment(cell.interpreter).packages
    )


@dataclass(frozen=True)
class SuiteInCells:
    """A suite in cells: its collected tests, and their executor.

    Attributes:
        suite: The suite.
        context: The project.
        locks: Lock of each cell, by cell id; may grow.
        slots: Sessions at the same time.
        fresh: Whether earlier collections are ignored.
        cluster: Cluster that runs the tests, None for this host.
    """

    suite: Suite
    context: ProjectContext
    locks: Mapping[str, Lock]
    slots: int
    fresh: bool = False
    cluster: ClusterChoice | None = None

    @cached_property
    def _cells(self) -> SuiteCells:
        return SuiteCells(self.locks, self.context.cache, self.suite)

    @cached_property
    def _session(self) -> Session:
        return Session(context=self.context, cluster=self.cluster)

    def collect(self, planned: Iterable[PlannedCell]) -> tuple[tuple[Case, ...], AnySuiteExecutor]:
        """Return the tests that are collected in any cell, and their executor.

        Args:
            planned: Cells in which tests are collected.

        Raises:
            NothingSelectedError: If there are no tests, or no cell can run any.
            UsageError: If pytest cannot collect anything anywhere.
            InfrastructureError: If no cell can be provided.
        """
        # The files are watched until the command ends: tests run long after they are collected.
        hold_until_end(watch_files(self.suite, self.context))
        cells = list(planned)
        cases: list[Case] = []
        found, errors = [], []
        # A version of the standard that no cell claims has no tests; the others still run.
        for suite in self.suite.split_standards():
            try:
                own, collected = replace(self, suite=suite)._collect_suite(cells)  # noqa: SLF001 - of this class
            except NothingSelectedError as error:
                errors.append(error)
            else:
                cases += own
                found.append(collected)
        if not found:
            raise errors[0]
        session = self._session
        if self.cluster is not None:
            return tuple(cases), session.make_cluster_suite_executor(
                found, self.locks, slots=self.slots
            )
        return tuple(cases), SuiteExecutor(found, slots=self.slots, devices=session.device_lock)

    def _collect_suite(
        self, cells: Sequence[PlannedCell]
    ) -> tuple[tuple[Case, ...], CollectedSuite]:
        """Return the tests of one suite, and where they were collected."""
        # Each look-up may create an environment: seconds of waiting for uv, not of computing.
        with ThreadPoolExecutor(self.slots) as threads:
            unable = list(zip(cells, threads.map(self._find_obstacle, cells), strict=True))
        able = [one for one, why in unable if not why]
        if not able:
            reasons = "; ".join(dict.fromkeys(f"{one.cell.id}: {why}" for one, why in unable))
            error = (
                InfrastructureError if any(one.failure for one in cells) else NothingSelectedError
            )
            raise error(f"{self.suite.name}: no cell runs tests; {reasons}")
        pools = collect_suite(
            self.suite, able, cells=self._cells, slots=self.slots,
            devices=self._session.device_lock,
            cache=CollectionCache(self.context.cache, fresh=self.fresh),
        )  # fmt: skip
        try:
            return self._collect_in(able, pools)
        except BaseException:
            # Also after Ctrl-C: workers of pytest would outlive the command.
            for pool in pools:
                pool.close()
            raise

    def _collect_in(
        self, able: Sequence[PlannedCell], pools: Sequence[SuiteWorkerPool]
    ) -> tuple[tuple[Case, ...], CollectedSuite]:
        """Return the tests of cells that can run them, and where they were collected."""
        found = [pool.collection for pool in pools]
        good = self._find_first_collection(able, found)
        cases = self.suite.make_cases(found)
        if not cases:
            where = f" in {able[0].cell.id}" if len(able) == 1 else f" in any of {len(able)} cells"
            raise NothingSelectedError(f"{self.suite.name}: no tests are collected{where}")
        self._refuse_removed_tests(able, found)
        # Node ids are relative to one root folder, so the first collection decides on it.
        collected = CollectedSuite(
            suite=self.suite, cells=self._cells, project=good,
            collections={pool.planned.cell.id: pool.collection for pool in pools},
            pools={pool.planned.cell.id: pool for pool in pools},
            timings=TestTimings(self.context.cache, self.suite),
        )  # fmt: skip
        return cases, collected

    def _find_obstacle(self, planned: PlannedCell) -> str:
        return _find_obstacle(planned) or self._cells.explain_refusal(planned)

    def _refuse_removed_tests(
        self, able: Sequence[PlannedCell], found: Sequence[Collection]
    ) -> None:
        """Refuse known failures of tests that no longer exist, if the whole suite is collected."""
        asked = self.suite.settings.get("standard", CLAIMED)
        if self.suite.named is None or not self.suite.complete or asked != CLAIMED:
            return
        places, names = [], set[str]()
        problems = [problem for one in found for problem in one.problems]
        for planned, one in zip(able, found, strict=True):
            # A cell that failed to collect shows of no test that it was removed.
            if not one.failure and "jax" in planned.versions:
                places.append((planned.release, planned.cell.platform, planned.versions))
            names.update(test.name for test in one.tests)
        reject_unknown_tests(
            self.suite.named.folder, places,
            # A module that could not be imported may have the test.
            lambda name: name in names or any(problem.covers(name) for problem in problems),
        )  # fmt: skip

    def _find_first_collection(
        self, able: Sequence[PlannedCell], found: Sequence[Collection]
    ) -> Collection:
        """Return the collection of the first cell in which it did not fail."""
        good = next((one for one in found if not one.failure), None)
        if good is not None:
            return good
        # An error of the suite explains more than one of the host.
        first = next((one for one in found if not one.infra), found[0])
        where = able[found.index(first)].cell.id
        if first.infra:
            raise InfrastructureError(f"{where}: {first.failure}")
        raise UsageError(
            f"{self.suite.name}: cannot be collected in any cell; {where}: {first.failure}"
            f"{_suggest_plugins(first.failure)}"
        )


def _find_obstacle(planned: PlannedCell) -> str:
    """Return the reason why a cell cannot run tests, empty if it can."""
    place = planned.cell.place
    if place.compile_only:
        return f"for {place.name} programs are compiled only"
    if place.processes > 1:
        return f"tests are written for one process, {place.name} has {place.processes}"
    return planned.missing or planned.failure


def _suggest_plugins(failure: str) -> str:
    """Return advice if a plugin of pytest or a module is missing, else an empty text."""
    # pytest reports the options of a missing plugin as unrecognized arguments.
    missing = "unrecognized arguments" in failure or "ModuleNotFoundError" in failure
    return "; name what the suite needs, its plugins too, by --with" if missing else ""
