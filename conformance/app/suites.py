"""A pytest suite in cells: its locks, its tests, what runs them, and its files while it is used."""

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
from conformance.engine.preparation import Preparation
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

    from conformance.app.context import ProjectContext
    from conformance.cells.accelerators import DeviceLock
    from conformance.cells.cell import Cell
    from conformance.cells.lock import Lock
    from conformance.engine.job import PlannedCell
    from conformance.model.case import Case
    from conformance.suites.catalogue.checkouts import Checkout
    from conformance.suites.catalogue.definition import NamedSuite
    from conformance.suites.files import FileChanges
    from conformance.suites.running.collection import Collection
    from conformance.suites.running.worker_pool import SuiteWorkerPool
    from conformance.suites.suite import Suite


@contextmanager
def watch_files(suite: Suite, context: ProjectContext) -> Iterator[None]:
    """Keep a suite's files while it is used, and tell what its tests leave among them.

    Those in the cache are then made what they were; a user's own are left as they are.

    Args:
        suite: The suite.
        context: The project.

    Raises:
        InfrastructureError: If the disk refuses.
    """
    checkouts = Checkouts(context.cache, print_note)
    held = nullcontext() if suite.checkout is None else checkouts.hold(suite.checkout)
    before = suite.scan_files()
    try:
        with held:
            yield
    finally:
        if left := compare_scans(before, suite.scan_files()):
            said = f"its folder is not as it was before the run: {_describe_traces(left, suite)}"
            print_note(f"{suite.name}: {said}{_undo(suite, checkouts)}")


def _undo(suite: Suite, checkouts: Checkouts) -> str:
    """Restore a checkout that the harness owns, and describe the result for the message."""
    if suite.checkout is None or suite.checkout.own:
        return ""
    tidy = checkouts.restore(suite.checkout)
    return "; that is undone" if tidy else "; the next run undoes that"


def _describe_traces(left: FileChanges, suite: Suite) -> str:
    parts = (("added", left.added), ("changed", left.changed), ("removed", left.removed))
    return ", ".join(
        f"{how} {join_names([os.path.relpath(path, suite.root) for path in paths])}"
        for how, paths in parts if paths
    )  # fmt: skip


PYTEST: Final = "pytest"


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteHome:
    """Where named suites are: their definitions in the project, their files in the cache.

    Attributes:
        context: The project.
        path: A checkout of the user's own, None for the one in the cache.
    """

    context: ProjectContext
    path: Path | None = None

    @property
    def folder(self) -> Path:
        """Folder of the suites' folders."""
        return self.context.project.suites

    def checkout(self, suite: NamedSuite) -> Checkout:
        """Return the files of a suite, fetched now if they are not there."""
        if self.path is not None:
            return inspect_own_checkout(self.path.expanduser(), suite)
        return Checkouts(self.context.cache, print_note).get(suite)


def resolve_suite_requirements(
    context: ProjectContext, wanted: Iterable[str], suite: Suite | None = None
) -> tuple[str, ...]:
    """Return what cells are to have beside their own packages, as requirements, for a suite.

    Args:
        context: The project.
        wanted: As for cases; pytest itself is added unless it is named.
        suite: The suite: what it requires is added, too, unless it is named.
    """
    own = Session(context=context).build_requirements(wanted)
    named = {parse_requirement(text).name for text in own}
    more = (*(() if suite is None else suite.definition.requires), PYTEST)
    return (*own, *(text for text in more if parse_requirement(text).name not in named))


def prepare_suite(
    context: ProjectContext, cells: Iterable[Cell], wanted: Sequence[str]
) -> Preparation:
    """Return what can be planned of some cells, each with pytest.

    Args:
        context: The project.
        cells: The cells.
        wanted: What they are to have beside. The pytest that an environment of the user's has
            is the one that counts, unless a version of it is named.
    """
    chosen = tuple(cells)
    having = {cell for cell in chosen if PYTEST in wanted and _has_pytest(cell)}
    others = [text for text in wanted if text != PYTEST]
    parts = [
        Session(context=context).prepare([cell for cell in chosen if cell not in having], wanted),
        Session(context=context).prepare([cell for cell in chosen if cell in having], others),
    ]
    order = {cell.id: number for number, cell in enumerate(chosen)}
    planned = [one for part in parts for one in part.cells]
    return Preparation(
        cells=tuple(sorted(planned, key=lambda one: order[one.cell.id])),
        exclusions=tuple(one for part in parts for one in part.exclusions),
        locks={cell: lock for part in parts for cell, lock in part.locks.items()},
    )


def _has_pytest(cell: Cell) -> bool:
    """Say whether a cell is a user's own environment that has a pytest."""
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
    """

    suite: Suite
    context: ProjectContext
    locks: Mapping[str, Lock]
    slots: int
    fresh: bool = False

    @cached_property
    def _cells(self) -> SuiteCells:
        return SuiteCells(self.locks, self.context.cache, self.suite)

    @cached_property
    def _device_lock(self) -> DeviceLock:
        return Session(context=self.context).device_lock

    def collect(self, planned: Iterable[PlannedCell]) -> tuple[tuple[Case, ...], SuiteExecutor]:
        """Return the tests that are collected in some cell, and their executor.

        Args:
            planned: The cells to look in.

        Raises:
            NothingSelectedError: If there are no tests, or no cell can run any.
            UsageError: If pytest cannot collected anything anywhere.
            InfrastructureError: If no cell can be provided.
        """
        # Whatever the command does with the tests: their files are watched until it ends.
        hold_until_end(watch_files(self.suite, self.context))
        cells = list(planned)
        cases: list[Case] = []
        found, why = [], []
        for suite in self.suite.split_standards():
            try:
                own, collected = replace(self, suite=suite)._collect_suite(cells)  # noqa: SLF001 - of this class
            except NothingSelectedError as error:
                why.append(error)
            else:
                cases += own
                found.append(collected)
        if not found:
            raise why[0]
        return tuple(cases), SuiteExecutor(found, slots=self.slots, devices=self._device_lock)

    def _collect_suite(
        self, cells: Sequence[PlannedCell]
    ) -> tuple[tuple[Case, ...], CollectedSuite]:
        """Return the tests of one suite, and where they were collected."""
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
            self.suite, able, cells=self._cells, slots=self.slots, devices=self._device_lock,
            cache=CollectionCache(self.context.cache, fresh=self.fresh),
        )  # fmt: skip
        try:
            return self._collect_in(able, pools)
        except BaseException:
            for pool in pools:
                pool.close()
            raise

    def _collect_in(
        self, able: Sequence[PlannedCell], pools: Sequence[SuiteWorkerPool]
    ) -> tuple[tuple[Case, ...], CollectedSuite]:
        """Return what is collected in cells that run tests."""
        found = [pool.collection for pool in pools]
        good = self._find_first_collection(able, found)
        cases = self.suite.make_cases(found)
        if not cases:
            where = f" in {able[0].cell.id}" if len(able) == 1 else f" in any of {len(able)} cells"
            raise NothingSelectedError(f"{self.suite.name}: no tests are collected{where}")
        self._refuse_dead(able, found)
        # Node ids start from one folder; of configurations the first that is found counts.
        collected = CollectedSuite(
            suite=self.suite, cells=self._cells, project=good,
            collections={pool.planned.cell.id: pool.collection for pool in pools},
            pools={pool.planned.cell.id: pool for pool in pools},
            timings=TestTimings(self.context.cache, self.suite),
        )  # fmt: skip
        return cases, collected

    def _find_obstacle(self, planned: PlannedCell) -> str:
        return _find_obstacle(planned) or self._cells.explain_refusal(planned)

    def _refuse_dead(self, able: Sequence[PlannedCell], found: Sequence[Collection]) -> None:
        """Refuse known failures of tests that there are no more, where all tests are looked for."""
        asked = self.suite.settings.get("standard", CLAIMED)
        if self.suite.named is None or not self.suite.complete or asked != CLAIMED:
            return
        places, names = [], set[str]()
        problems = [problem for one in found for problem in one.problems]
        for planned, one in zip(able, found, strict=True):
            if not one.failure and "jax" in planned.versions:
                places.append((planned.release, planned.cell.platform, planned.versions))
            names.update(test.name for test in one.tests)
        reject_unknown_tests(
            self.suite.named.folder, places,
            lambda name: name in names or any(problem.covers(name) for problem in problems),
        )  # fmt: skip

    def _find_first_collection(
        self, able: Sequence[PlannedCell], found: Sequence[Collection]
    ) -> Collection:
        """Return the collection of the first cell in which it did not fail."""
        good = next((one for one in found if not one.failure), None)
        if good is not None:
            return good
        first = next((one for one in found if not one.infra), found[0])
        where = able[found.index(first)].cell.id
        if first.infra:
            raise InfrastructureError(f"{where}: {first.failure}")
        raise UsageError(
            f"{self.suite.name}: cannot be collected in any cell; {where}: {first.failure}"
            f"{_suggest_plugins(first.failure)}"
        )


def _find_obstacle(planned: PlannedCell) -> str:
    """Return why a cell runs no tests, empty if it does."""
    place = planned.cell.place
    if place.compile_only:
        return f"for {place.name} programs are compiled only"
    if place.processes > 1:
        return f"tests are written for one process, {place.name} has {place.processes}"
    return planned.missing or planned.failure


def _suggest_plugins(failure: str) -> str:
    """Return what may help where a plugin of pytest is not there."""
    missing = "unrecognized arguments" in failure or "ModuleNotFoundError" in failure
    return "; name what the suite needs, its plugins too, by --with" if missing else ""
