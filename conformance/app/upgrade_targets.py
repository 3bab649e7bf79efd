"""The targets of an upgrade: cases, or the tests of a pytest suite; both are tried alike."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from conformance.app.session import Session
from conformance.app.suites import SuiteHome, SuiteInCells, prepare_suite, suite_wanted
from conformance.errors import UsageError
from conformance.suites.suite import suite_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from conformance.app.context import ProjectContext
    from conformance.app.suite_target import InSuite
    from conformance.cells.cell import Cell
    from conformance.cells.lock import Lock
    from conformance.engine.job import Executor, PlannedCell
    from conformance.engine.preparation import Preparation
    from conformance.model.case import Case
    from conformance.model.run import RunSuite
    from conformance.suites.suite import Suite

    Found = tuple[tuple[Case, ...], Executor]

PLATFORM: Final = "cpu8"
"""The platform of an upgrade by default."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UpgradeOptions:
    """Options of `conformance upgrade`.

    Attributes:
        platforms: Platforms to try; empty for the default.
        thorough: Whether every case is tried on every release.
        blame: The changes whose package is searched for: `breaking`, `all`, or None for none.
        suites: Paths of files and folders of tests, or the name of a suite, instead of cases.
        suite: Options of the suite.
        timeout: Seconds that one test may take, None for the timeout of the suite.
        wanted: Requirements in addition to the packages of the cells.
        fresh: Whether earlier results and collections are ignored.
        jobs: Jobs at the same time.
    """

    platforms: tuple[str, ...]
    thorough: bool
    blame: str | None
    suites: tuple[str, ...]
    suite: InSuite
    timeout: float | None
    wanted: tuple[str, ...]
    fresh: bool
    jobs: int

    @property
    def places(self) -> tuple[str, ...]:
        """The platforms, each once; the default if none is given."""
        return tuple(dict.fromkeys(self.platforms)) or (PLATFORM,)


class Subject(Protocol):
    """What is upgraded."""

    @property
    def wanted(self) -> tuple[str, ...]:
        """What cells have beside their own packages, as requirements."""
        ...

    @property
    def root(self) -> Path:
        """Folder that its files are told from."""
        ...

    @property
    def described(self) -> RunSuite | None:
        """What is told of the suite with the run, None of cases."""
        ...

    def prepare(self, cells: Iterable[Cell]) -> Preparation:
        """Return what can be planned of some cells."""
        ...

    def found(self, ends: Iterable[PlannedCell], locks: Mapping[str, Lock]) -> Found:
        """Return what is tried, and what tries it.

        Args:
            ends: Both ends, on each platform.
            locks: Lock of each cell, by cell id; may grow.
        """
        ...


@dataclass(frozen=True, kw_only=True)
class _Cases:
    context: ProjectContext
    select: Sequence[str]
    wanted: tuple[str, ...]
    slots: int
    described: RunSuite | None = None

    @property
    def root(self) -> Path:
        return self.context.project.root

    def prepare(self, cells: Iterable[Cell]) -> Preparation:
        return Session(context=self.context).prepare(cells, self.wanted)

    def found(self, ends: Iterable[PlannedCell], locks: Mapping[str, Lock]) -> Found:  # noqa: ARG002 - cases are read without a cell
        executor = Session(context=self.context).executor(locks, slots=self.slots)
        return self.context.cases(self.select), executor


@dataclass(frozen=True, kw_only=True)
class _Tests:
    context: ProjectContext
    suite: Suite
    wanted: tuple[str, ...]
    slots: int
    fresh: bool

    @property
    def root(self) -> Path:
        return self.suite.root

    @property
    def described(self) -> RunSuite:
        # Of the releases in between only what differs is tried.
        return replace(self.suite.described(), complete=False)

    def prepare(self, cells: Iterable[Cell]) -> Preparation:
        return prepare_suite(self.context, cells, self.wanted)

    def found(self, ends: Iterable[PlannedCell], locks: Mapping[str, Lock]) -> Found:
        inside = SuiteInCells(self.suite, self.context, locks, slots=self.slots, fresh=self.fresh)
        return inside.collected(ends)


def subject_of(context: ProjectContext, select: Sequence[str], options: UpgradeOptions) -> Subject:
    """Return what is upgraded.

    Args:
        context: The project.
        select: Cases; where suites are named, arguments of pytest's own.
        options: The options.

    Raises:
        UsageError: If both are named, or a path or suite is not there.
        InfrastructureError: If a named suite cannot be fetched.
    """
    wanted, slots = options.wanted, options.jobs
    if not options.suites:
        requirements = Session(context=context).requirements(wanted)
        return _Cases(context=context, select=select, wanted=requirements, slots=slots)
    if select and not select[0].startswith("-"):
        raise UsageError(f"--suite and SELECT {select[0]}: expected one of them")
    asked = options.suite
    suite = suite_of(
        [*options.suites, *select], timeout=options.timeout, wanted=wanted, start=Path.cwd(),
        examples=asked.examples, standard=asked.standard,
        home=SuiteHome(context=context, path=asked.path),
    )  # fmt: skip
    return _Tests(
        context=context, slots=slots, fresh=options.fresh, suite=suite,
        wanted=suite_wanted(context, wanted, suite),
    )  # fmt: skip
