"""The subject of an upgrade: cases of the project or tests of a suite, and the options."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from conformance.app.session import Session
from conformance.app.suites.cells import (
    SuiteHome,
    SuiteInCells,
    prepare_suite,
    resolve_suite_requirements,
)
from conformance.app.suites.target import make_suite_test
from conformance.errors import UsageError
from conformance.suites.suite import make_suite

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from conformance.app.cluster_choice import ClusterChoice
    from conformance.app.context import ProjectContext
    from conformance.app.suites.target import SuiteOptions
    from conformance.app.target import Target
    from conformance.cells.cell import Cell
    from conformance.cells.lock import Lock
    from conformance.engine.job import Executor, PlannedCell
    from conformance.engine.workers.preparation import Preparation
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
        cluster: Cluster that runs the jobs, None for this host.
        layers: Whether the layer is searched for, too.
        commits: Whether the commit of jax is searched for, too.
        jax_repo: Repository of jax, empty for that of the settings, or the public one.
        time: Whether time and memory are compared, too.
    """

    platforms: tuple[str, ...]
    thorough: bool
    blame: str | None
    suites: tuple[str, ...]
    suite: SuiteOptions
    timeout: float | None
    wanted: tuple[str, ...]
    fresh: bool
    jobs: int
    cluster: ClusterChoice | None = None
    layers: bool = False
    commits: bool = False
    jax_repo: str = ""
    time: bool = False

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
        find_target: Returns the target of searches for a case or a test.
        described: Description of the suite in the run; None for cases.
    """

    root: Path
    wanted: tuple[str, ...]
    prepare: Callable[[Iterable[Cell]], Preparation]
    collect: Callable[[Iterable[PlannedCell], Mapping[str, Lock]], Found]
    find_target: Callable[[Case], Target] = lambda case: case
    described: RunSuite | None = None


def make_subject(
    context: ProjectContext, select: Sequence[str], options: UpgradeOptions
) -> UpgradeSubject:
    """Make the subject of an upgrade: cases of the project, or tests of a suite.

    Args:
        context: The project.
        select: Words of SELECT; with `--suite`, arguments of pytest.
        options: The options.

    Raises:
        UsageError: If both are named, a path or suite does not exist, or a test is to be measured.
        InfrastructureError: If a named suite cannot be fetched.
    """
    wanted, slots = options.wanted, options.jobs
    if not options.suites:
        session = Session(context=context, cluster=options.cluster)
        requirements = session.build_requirements(wanted)
        return UpgradeSubject(
            root=context.project.root, wanted=requirements,
            prepare=lambda cells: session.prepare(cells, requirements),
            collect=lambda _, locks: (
                context.select_cases(select), session.make_executor(locks, slots=slots)
            ),
        )  # fmt: skip
    if options.time:
        raise UsageError("--time: goes with cases, got a suite")
    # Arguments of pytest begin with an option; click has removed the -- before them.
    if select and not select[0].startswith("-"):
        raise UsageError(f"--suite and SELECT {select[0]}: expected one of them")
    in_suite = options.suite
    suite = make_suite(
        [*options.suites, *select], timeout=options.timeout, wanted=wanted, start=Path.cwd(),
        examples=in_suite.examples, standard=in_suite.standard,
        home=SuiteHome(context=context, path=in_suite.path),
    )  # fmt: skip
    requirements = resolve_suite_requirements(context, wanted, suite)
    return UpgradeSubject(
        root=suite.root, wanted=requirements,
        prepare=lambda cells: prepare_suite(context, cells, requirements),
        collect=lambda ends, locks: SuiteInCells(
            suite, context, locks, slots=slots, fresh=options.fresh, cluster=options.cluster
        ).collect(ends),
        # The first argument that selects a test is its node id.
        find_target=lambda test: make_suite_test(
            context, shlex.split(test.arguments)[0], in_suite, timeout=suite.timeout, wanted=wanted
        ),
        # Most releases in between are not tried, so no test counts as removed there.
        described=replace(suite.describe(), complete=False),
    )  # fmt: skip
