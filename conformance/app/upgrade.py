"""An upgrade: both ends, the changes between them, and the packages that made the changes."""

from __future__ import annotations

import shlex
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from conformance.app.axes import check_nightlies, make_upgrade_points
from conformance.app.bisect import find_change
from conformance.app.blame import blame_case
from conformance.app.change_origin import find_origin
from conformance.app.commit_ends import find_jax_location
from conformance.app.search_options import SearchOptions
from conformance.app.session import Session
from conformance.app.suite_target import make_suite_test
from conformance.app.suites import (
    SuiteHome,
    SuiteInCells,
    prepare_suite,
    resolve_suite_requirements,
)
from conformance.engine.plan import Plan
from conformance.engine.run_directory import Results
from conformance.engine.runner import finish_run, make_run_info
from conformance.errors import ConformanceError, NothingSelectedError, UsageError
from conformance.model.outcome import ExitCode
from conformance.report.upgrade_result import UpgradeResult, add_culprits, find_unclear
from conformance.report.upgrade_text import render_asides
from conformance.search.axes import JAX, AxisCells, AxisPoint, PackageMove, SearchAxis
from conformance.suites.suite import make_suite
from conformance.triage.commits.commit_search import CommitVerdict
from conformance.triage.commits.render import JAXLIB, list_culprit_commits, render_environment
from conformance.triage.layers.answer import LayerAnswer
from conformance.triage.layers.render import describe_layer
from conformance.triage.upgrade.comparison import (
    Culprits,
    UpgradeAxis,
    choose_predicate_options,
    search_culprits,
)
from conformance.triage.upgrade.effect import BREAKING, Effect
from conformance.triage.upgrade.upgrade import Upgrade

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from conformance.app.cluster_choice import ClusterChoice
    from conformance.app.context import ProjectContext
    from conformance.app.suite_target import SuiteOptions
    from conformance.app.target import Target
    from conformance.cells.cell import Cell
    from conformance.cells.lock import Lock
    from conformance.engine.job import Executor, PlannedCell
    from conformance.engine.preparation import Preparation
    from conformance.model.case import Case
    from conformance.model.record import Record
    from conformance.model.run import RunSuite
    from conformance.report.upgrade_result import UpgradeCaseStep
    from conformance.triage.commits.render import PackageCulprit
    from conformance.triage.upgrade.comparison import ComparedCase, UpgradeStep

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
        UsageError: If both are named, or a path or suite does not exist.
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


BLAMED: Final = {None: frozenset[Effect](), "breaking": BREAKING, "all": frozenset(Effect)}
"""The effects whose package is searched for, by the value of `--blame`."""


class UpgradeRun:
    """An upgrade whose cells are prepared and whose cases are known.

    Args:
        context: The project.
        ends: Both ends: each a release, a specifier, a lock, or `path:` and an interpreter.
        select: Words of SELECT; with `--suite`, arguments of pytest.
        options: The options.

    Raises:
        UsageError: If an end, a case or a suite does not exist, or options contradict each other.
        NothingSelectedError: If there are no tests.
        InfrastructureError: If a cell cannot be provided.
    """

    def __init__(
        self,
        context: ProjectContext,
        ends: tuple[str, str],
        select: Sequence[str],
        options: UpgradeOptions,
    ) -> None:
        self._context, self._options = context, options
        self._subject = make_subject(context, select, options)
        check = partial(check_nightlies, context)
        points = {
            platform: AxisCells(
                make_upgrade_points(context, ends, platform), self._subject.prepare, check=check
            )
            for platform in options.places
        }
        # After the ends are resolved, so that a wrong end leaves no run directory.
        self.directory = context.runs.allocate()
        self._locks: dict[str, Lock] = {}
        for found in points.values():
            self._locks |= found.locks
        # A suite is collected at both ends: tests may be skipped or parametrised by the version of
        # jax.
        both = (found[n] for found in points.values() for n in (0, -1))
        cases, self._executor = self._subject.collect(both, self._locks)
        self._runner = Session(context=context, fresh=options.fresh).make_job_runner(
            self._executor, self.directory.blobs
        )
        self._upgrade = Upgrade(
            cases, [_make_axis(name, found) for name, found in points.items()],
            root=self._subject.root, runner=self._runner, blobs=self.directory.blobs,
            thorough=options.thorough,
        )  # fmt: skip
        self._exclusions = tuple(entry for found in points.values() for entry in found.exclusions)

    def execute(self, take: Callable[[Record], None]) -> UpgradeResult:
        """Try the cases at both ends and in between as needed, and write the run.

        Args:
            take: Called with each record.

        Returns:
            What changed, without the packages that made the changes.

        Raises:
            NothingSelectedError: If nothing could be compared.
        """
        jobs = 0
        with closing(Results(self.directory)) as results:
            for record in self._upgrade.run():
                jobs += 1
                # A recalled record need not survive a power failure: it would be recalled again.
                results.append(record, sync=not record.cached)
                take(record)
        upgraded = UpgradeResult(
            compared=tuple(self._upgrade.list_comparisons()), left_out=self._exclusions, jobs=jobs,
            root=str(self._subject.root),
        )  # fmt: skip
        self._describe(upgraded)
        # Without a comparison, only cases that disagree with themselves are worth a report.
        if not upgraded.whole and not any(compared.flaky for compared in upgraded.compared):
            raise NothingSelectedError(f"nothing to compare; {'; '.join(render_asides(upgraded))}")
        return upgraded

    def blame(
        self, upgraded: UpgradeResult, say: Callable[[str], None]
    ) -> tuple[UpgradeResult, bool]:
        """Search for the packages that made the changes selected by `--blame`, and the commits.

        Args:
            upgraded: The upgrade.
            say: Called with each step, in a line.

        Returns:
            The upgrade with the packages, and whether the search is complete: an interrupt ends
            it early.
        """
        search = partial(
            blame_case, self._context, prepare=self._subject.prepare, runner=self._runner,
            locks=self._locks, wanted=self._subject.wanted,
        )  # fmt: skip
        found: dict[int, Culprits] = {}
        effects = BLAMED[self._options.blame]
        is_traced = self._options.commits or self._options.layers
        changes = list(find_unclear(upgraded, effects, of_jax=is_traced))
        try:
            for number, change in enumerate(changes, 1):
                compared, step = change.compared, change.step
                head = f"which package: {number} of {len(changes)}: {compared.case.id}"
                say(head)
                report = partial(_say_below, say, head)
                # By identity, because two cases may have equal steps.
                culprits = (
                    search_culprits(compared, step, partial(search, say=report))
                    if change.other_suspects
                    else _make_culprits(change)
                )
                if is_traced:
                    culprits = self._trace(compared, step, culprits, report)
                found[id(step)] = culprits
        # The upgrade itself is complete: an interrupt only leaves the remaining packages open.
        except KeyboardInterrupt:
            return add_culprits(upgraded, found), False
        return add_culprits(upgraded, found), True

    def _trace(
        self,
        compared: ComparedCase,
        step: UpgradeStep,
        culprits: Culprits,
        say: Callable[[str], None],
    ) -> Culprits:
        """Return the culprits of a change with layer and commit, if jax is one of them."""
        packages = {move.package for guilty in culprits.guilty for move in guilty}
        if packages.isdisjoint({JAX, JAXLIB}):
            return culprits
        cells = [planned.cell for planned in compared.find_cells(step)]
        predicate = choose_predicate_options(step)
        points = [AxisPoint(label=cell.release, cell=cell) for cell in cells]
        # The cell is the platform, so that changes of one case in two cells have two logs.
        options = SearchOptions(
            good=cells[0].release, bad=cells[1].release, platform=cells[1].id,
            when=predicate.when or None, fact=predicate.fact, wanted=self._subject.wanted,
            fresh=self._options.fresh, jobs=self._options.jobs,
        )  # fmt: skip
        axis = SearchAxis(name=JAX, points=points)
        asked = self._options
        location = find_jax_location(self._context, asked.jax_repo) if asked.commits else ""
        try:
            target = self._subject.find_target(compared.case)
            found = find_change(self._context, target, options, say, axis=axis)
            for part in find_origin(
                self._context, target, options, found, layers=asked.layers, location=location,
                say=say,
            ):  # fmt: skip
                culprits = _add_origin(culprits, part)
        except ConformanceError as error:
            doubts = "; ".join(filter(None, (culprits.doubts, f"no commit: {error}")))
            return replace(culprits, doubts=doubts)
        return culprits

    def _describe(self, upgraded: UpgradeResult) -> None:
        """Write the description of the jobs as a run, which reports can read."""
        jobs = tuple(self._upgrade.list_jobs())
        cells = {job.planned.cell.id: job.planned for job in jobs}
        plan = Plan(jobs=jobs, exclusions=self._exclusions, cells=tuple(cells.values()))
        # Described at the end: only then is it known which releases in between were tried.
        info = make_run_info(
            plan, request={}, matrix="", root=self._subject.root, suite=self._subject.described
        )
        self.directory.write_run(
            finish_run(info, find_exit_code(upgraded), self._executor.identities)
        )


def find_exit_code(upgraded: UpgradeResult) -> ExitCode:
    """Return the exit status of an upgrade.

    Args:
        upgraded: The upgrade.
    """
    if not upgraded.whole:
        # Only flaky cases were compared; without any comparison `execute` raises.
        return ExitCode.NOTHING
    return ExitCode.UNEXPECTED if upgraded.breaks else ExitCode.OK


def _make_culprits(change: UpgradeCaseStep) -> Culprits:
    """Return the culprits of a change that only jax's packages can have made."""
    moves = (PackageMove(name, *versions) for name, versions in change.suspects.items())
    return Culprits(case=change.compared.case.id, guilty=(tuple(moves),))


def _add_origin(culprits: Culprits, part: LayerAnswer | PackageCulprit) -> Culprits:
    """Return the culprits of a change with the layer, or with the commit."""
    if isinstance(part, LayerAnswer):
        return replace(culprits, layer=describe_layer(part))
    # jax and jaxlib are released together: the search separates them.
    innocent = {CommitVerdict.COMMIT: JAXLIB, CommitVerdict.ENVIRONMENT: JAX}
    name = innocent.get(part.finding.verdict)
    guilty = tuple(tuple(m for m in group if m.package != name) for group in culprits.guilty)
    # A set of which nothing is left was the innocent package alone.
    return replace(
        culprits, guilty=tuple(filter(None, guilty)) or culprits.guilty,
        commits=list_culprit_commits(part),
        remarks=(*render_environment(part), *part.finding.remarks),
    )  # fmt: skip


def _make_axis(platform: str, points: AxisCells) -> UpgradeAxis:
    return UpgradeAxis(platform=platform, cells=tuple(points), labels=points.labels)


def _say_below(say: Callable[[str], None], head: str, line: str) -> None:
    say(f"{head}: {line}")
