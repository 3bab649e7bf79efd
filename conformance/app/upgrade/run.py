"""An upgrade: both ends, the changes between them, and the packages that made the changes."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from conformance.app.bench.choice import choose_measured_cases
from conformance.app.layers.origin import find_origin
from conformance.app.search.axes import check_nightlies, make_upgrade_points
from conformance.app.search.bisect import find_change
from conformance.app.search.blame import blame_case
from conformance.app.search.commit_ends import find_jax_location
from conformance.app.search.options import SearchOptions
from conformance.app.session import Session
from conformance.app.upgrade.costs import CostSearch
from conformance.app.upgrade.subject import make_subject
from conformance.engine.plan import Plan
from conformance.engine.runner import finish_run, make_run_info
from conformance.engine.runs.directory import Results
from conformance.errors import ConformanceError, NothingSelectedError
from conformance.model.outcome import ExitCode
from conformance.report.upgrade.result import UpgradeResult, add_culprits, find_unclear
from conformance.report.upgrade.text import render_asides
from conformance.search.axes import JAX, AxisCells, AxisPoint, PackageMove, SearchAxis
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
    from collections.abc import Callable, Sequence

    from conformance.app.context import ProjectContext
    from conformance.app.upgrade.subject import UpgradeOptions
    from conformance.cells.lock import Lock
    from conformance.model.record import Record
    from conformance.report.upgrade.result import UpgradeCaseStep
    from conformance.triage.commits.render import PackageCulprit
    from conformance.triage.upgrade.comparison import ComparedCase, UpgradeStep

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
        self._context, self._options, self._select = context, options, select
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
        self._points = points
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

    def execute(
        self, begin: Callable[[str, int], None], take: Callable[[Record], None]
    ) -> UpgradeResult:
        """Try the cases at both ends and in between as needed, and write the run.

        Args:
            begin: Called with the name of each phase and the number of its jobs.
            take: Called with the record of each job.

        Returns:
            What changed, without the packages that made the changes.

        Raises:
            NothingSelectedError: If nothing could be compared.
        """
        jobs = 0
        with closing(Results(self.directory)) as results:
            for record in self._upgrade.run(begin, take):
                jobs += 1
                # A recalled record need not survive a power failure: it would be recalled again.
                results.append(record, sync=not record.cached)
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

    def compare_costs(self, upgraded: UpgradeResult, say: Callable[[str], None]) -> UpgradeResult:
        """Compare time and memory of the selected cases at both ends, and find the releases.

        Args:
            upgraded: The upgrade.
            say: Called with each step, in a line.

        Returns:
            The upgrade with the changes of time and memory; without a selection, of the functions
            that the project lists, or else of the family `performance`.

        Raises:
            UsageError: If there is no such case.
            InfrastructureError: If a cell cannot be provided, or the disk refuses.
        """
        cases = choose_measured_cases(self._context, self._select)
        costs = tuple(
            change
            for platform, cells in self._points.items()
            for change in CostSearch(
                context=self._context, platform=platform, cells=cells, options=self._options,
                wanted=self._subject.wanted, say=say,
            ).find(cases)
        )  # fmt: skip
        return replace(upgraded, costs=costs, measured=len(cases) * len(self._points))

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
