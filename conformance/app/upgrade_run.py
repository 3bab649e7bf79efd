"""The run of `conformance upgrade`: both ends, what differs between them, and the packages."""

from __future__ import annotations

from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from conformance.app.axes import nightlies_answer, upgrade_points
from conformance.app.blame import blame_case
from conformance.app.output_files import check_writable, write_file
from conformance.app.session import Session
from conformance.app.upgrade_targets import subject_of
from conformance.engine.plan import Plan
from conformance.engine.run_directory import Results, RunDirectory, new_run
from conformance.engine.run_info import finish_run, make_run_info
from conformance.errors import NothingSelectedError
from conformance.files import readable_json
from conformance.model.outcome import ExitCode
from conformance.report.upgrade_culprits import unclear, with_culprits
from conformance.report.upgrade_data import make_upgrade_file
from conformance.report.upgrade_result import UpgradeResult
from conformance.report.upgrade_text import render_asides, render_upgrade_markdown
from conformance.search.axes import Points
from conformance.triage.upgrade.comparison import UpgradeAxis
from conformance.triage.upgrade.culprit_search import culprits_of
from conformance.triage.upgrade.effect import BREAKING, Effect
from conformance.triage.upgrade.upgrade import Upgrade

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from conformance.app.context import ProjectContext
    from conformance.app.upgrade_targets import UpgradeOptions
    from conformance.cells.lock import Lock
    from conformance.model.record import Record
    from conformance.triage.upgrade.comparison import Culprits

BLAMED: Final = {None: frozenset[Effect](), "breaking": BREAKING, "all": frozenset(Effect)}
"""The effects whose package is searched for, by the value of `--blame`."""


class UpgradeFiles(NamedTuple):
    """Files that an upgrade is written to in addition to its run.

    Attributes:
        json: The file of `--json`.
        markdown: The file of `--markdown`.
    """

    json: Path | None
    markdown: Path | None

    @property
    def printed(self) -> bool:
        """Whether one of them is standard output, where nothing else is printed then."""
        return "-" in {str(self.json), str(self.markdown)}

    def check(self) -> None:
        """Refuse files that cannot be written, before anything is tried."""
        for option, file in (("--json", self.json), ("--markdown", self.markdown)):
            if file is not None:
                check_writable(option, file)

    def write(self, upgraded: UpgradeResult, directory: RunDirectory) -> None:
        """Write the result of an upgrade to these files and to the directory of its run."""
        content = readable_json(make_upgrade_file(upgraded))
        directory.write_upgrade(content)
        if self.json is not None:
            write_file("--json", self.json, content)
        if self.markdown is not None:
            write_file("--markdown", self.markdown, render_upgrade_markdown(upgraded).encode())


class UpgradeRun:
    """An upgrade whose cells are prepared and whose cases are known.

    Args:
        context: The project.
        ends: Both ends: each a release, a specifier, a lock, or `path:` and an interpreter.
        select: Cases; where suites are named, arguments of pytest's own.
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
        self._subject = subject_of(context, select, options)
        check = partial(nightlies_answer, context)
        points = {
            platform: Points(
                upgrade_points(context, ends, platform), self._subject.prepare, check=check
            )
            for platform in options.places
        }
        self.directory: RunDirectory = new_run(context.project.root)
        self._locks: dict[str, Lock] = {}
        for found in points.values():
            self._locks |= found.locks
        both = (found[n] for found in points.values() for n in (0, -1))
        cases, self._executor = self._subject.collect(both, self._locks)
        self._runner = Session(context=context, fresh=options.fresh).job_runner(
            self._executor, self.directory.blobs
        )
        self._upgrade = Upgrade(
            cases, [_axis(name, found) for name, found in points.items()],
            root=self._subject.root, runner=self._runner, blobs=self.directory.blobs,
            thorough=options.thorough,
        )  # fmt: skip
        self._exclusions = tuple(entry for found in points.values() for entry in found.exclusions)

    def execute(self, take: Callable[[Record], None]) -> UpgradeResult:
        """Try everything, and describe the run.

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
                results.append(record, sync=not record.cached)
                take(record)
        upgraded = UpgradeResult(
            compared=tuple(self._upgrade.compared()), left_out=self._exclusions, jobs=jobs,
            root=str(self._subject.root),
        )  # fmt: skip
        self._describe(upgraded)
        # Without a comparison, only cases that disagree with themselves are worth a report.
        if not upgraded.whole and not any(one.flaky for one in upgraded.compared):
            raise NothingSelectedError(f"nothing to compare; {'; '.join(render_asides(upgraded))}")
        return upgraded

    def blame(
        self, upgraded: UpgradeResult, say: Callable[[str], None]
    ) -> tuple[UpgradeResult, bool]:
        """Search for the packages that made the changes that are asked about.

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
        changes = list(unclear(upgraded, BLAMED[self._options.blame]))
        try:
            for number, (one, step) in enumerate(changes, 1):
                head = f"which package: {number} of {len(changes)}: {one.case.id}"
                say(head)
                report = partial(_say_below, say, head)
                found[id(step)] = culprits_of(one, step, partial(search, say=report))
        except KeyboardInterrupt:
            return with_culprits(upgraded, found), False
        return with_culprits(upgraded, found), True

    def _describe(self, upgraded: UpgradeResult) -> None:
        """Describe the jobs as a run, which reports read as any other."""
        jobs = tuple(self._upgrade.jobs())
        cells = {job.planned.cell.id: job.planned for job in jobs}
        plan = Plan(jobs=jobs, exclusions=self._exclusions, cells=tuple(cells.values()))
        info = make_run_info(
            plan, request={}, matrix="", root=self._subject.root, suite=self._subject.described
        )
        self.directory.write_run(
            finish_run(info, exit_code_of(upgraded), self._executor.identities)
        )


def exit_code_of(upgraded: UpgradeResult) -> ExitCode:
    """Return the exit status of an upgrade.

    Args:
        upgraded: The upgrade.
    """
    if not upgraded.whole:
        return ExitCode.NOTHING
    return ExitCode.UNEXPECTED if upgraded.breaks else ExitCode.OK


def _axis(platform: str, points: Points) -> UpgradeAxis:
    return UpgradeAxis(platform=platform, cells=tuple(points), labels=points.labels)


def _say_below(say: Callable[[str], None], head: str, line: str) -> None:
    say(f"{head}: {line}")
