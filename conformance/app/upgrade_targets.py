"""The targets of an upgrade: cases, or the tests of a pytest suite; both are tried alike."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from conformance.app.session import Session
from conformance.app.suites import SuiteHome, SuiteInCells, prepare_suite, suite_wanted
from conformance.errors import UsageError
from conformance.suites.suite import suite_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from conformance.app.context import ProjectContext
    from conformance.app.suite_target import InSuite
    from conformance.cells.cell import Cell
    from conformance.cells.lock import Lock
    from conformance.engine.job import Executor, PlannedCell
    from conformance.engine.preparation import Preparation
    from conformance.model.case import Case
    from conformance.model.run import RunSuite

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


@dataclass(frozen=True, slots=True, kw_only=True)
class UpgradeSubject:
    """The cases or tests of an upgrade.

    Attributes:
        root: Folder that paths are relative to.
        wanted: Requirements of the cells in addition to their own packages.
        prepare: Looks up locks.
        collect: Returns the cases or tests and their executor, given both ends on each platform and
            the lock of each cell, by cell id.
        described: The description of the suite in the run; None for cases.
    """

    root: Path
    wanted: tuple[str, ...]
    prepare: Callable[[Iterable[Cell]], Preparation]
    collect: Callable[[Iterable[PlannedCell], Mapping[str, Lock]], Found]
    described: RunSuite | None = None


def subject_of(
    context: ProjectContext, select: Sequence[str], options: UpgradeOptions
) -> UpgradeSubject:
    """Return the cases or tests of an upgrade.

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
        session = Session(context=context)
        requirements = session.requirements(wanted)
        return UpgradeSubject(
            root=context.project.root, wanted=requirements,
            prepare=lambda cells: session.prepare(cells, requirements),
            collect=lambda _, locks: (
                context.cases(select), session.executor(locks, slots=slots)
            ),
        )  # fmt: skip
    if select and not select[0].startswith("-"):
        raise UsageError(f"--suite and SELECT {select[0]}: expected one of them")
    asked = options.suite
    suite = suite_of(
        [*options.suites, *select], timeout=options.timeout, wanted=wanted, start=Path.cwd(),
        examples=asked.examples, standard=asked.standard,
        home=SuiteHome(context=context, path=asked.path),
    )  # fmt: skip
    requirements = suite_wanted(context, wanted, suite)
    return UpgradeSubject(
        root=suite.root, wanted=requirements,
        prepare=lambda cells: prepare_suite(context, cells, requirements),
        collect=lambda ends, locks: SuiteInCells(
            suite, context, locks, slots=slots, fresh=options.fresh
        ).collected(ends),
        # Of the releases in between only those that differ are tried.
        described=replace(suite.described(), complete=False),
    )  # fmt: skip
