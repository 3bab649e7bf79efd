"""A run of a suite: prepared, collected, executed and concluded."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from conformance.app.context import DEFAULT_MATRIX
from conformance.app.session import Session
from conformance.app.suites.cells import (
    SuiteHome,
    SuiteInCells,
    prepare_suite,
    resolve_suite_requirements,
)
from conformance.engine.exit_policy import FailOn, decide_exit
from conformance.engine.plan import make_plan
from conformance.engine.runner import RepeatedRun, Run, finish_run, make_run_info
from conformance.engine.runs.loader import LoadedRun
from conformance.errors import NothingSelectedError
from conformance.report.report import Report
from conformance.report.suites.results import (
    collect_warnings,
    read_collection_warnings,
    render_suite,
)
from conformance.report.summary import render_exit
from conformance.report.tracebacks import render_cause_tracebacks
from conformance.suites.suite import make_suite

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from conformance.app.cluster_choice import ClusterChoice
    from conformance.app.context import ProjectContext
    from conformance.app.suites.cells import AnySuiteExecutor
    from conformance.app.suites.target import SuiteOptions
    from conformance.engine.plan import Plan
    from conformance.engine.runs.directory import RunDirectory
    from conformance.engine.workers.preparation import Preparation
    from conformance.model.outcome import ExitCode
    from conformance.model.record import Record
    from conformance.model.run import Exclusion, RunInfo, RunSuite
    from conformance.suites.suite import Suite


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteRunOptions:
    """The options of `conformance suite run`.

    Attributes:
        words: Paths of tests or the name of a suite, then arguments of pytest.
        matrix: Name or file of a matrix, None for the default.
        cell: Cell selectors.
        wanted: Packages that cells get in addition to their own.
        suite: Options of the suite.
        timeout: Seconds that one test may take, None for the timeout of the suite.
        jobs: Sessions of pytest at the same time.
        fresh: Whether results of earlier runs are ignored.
        repeat: Attempts of each test; None for one, repeated only if its result is unexpected.
        repeat_seed: Seed of the orders in which repeated tests run.
        cluster: Cluster that runs the tests, None for this host.
    """

    words: tuple[str, ...]
    matrix: str | None
    cell: tuple[str, ...]
    wanted: tuple[str, ...]
    suite: SuiteOptions
    timeout: float | None
    jobs: int
    fresh: bool
    repeat: int | None
    repeat_seed: int
    cluster: ClusterChoice | None = None

    @property
    def remedy(self) -> str:
        """The advice after an interrupt, as a sentence."""
        if self.repeat is None:
            return "the same command goes on where it was"
        # Repeated attempts are never recalled from the cache, which would make them equal.
        return "attempts are counted from the beginning the next time"

    def describe(self, suite: Suite) -> RunSuite:
        """Return the description of a suite, with the repetition among its settings."""
        described = suite.describe()
        if self.repeat is None:
            return described
        repetition = {"repeat": self.repeat, "repeat_seed": self.repeat_seed}
        return replace(described, settings={**described.settings, **repetition})


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteRun:
    """A run of a suite whose tests are not collected yet.

    Attributes:
        context: The project.
        options: The options.
        suite: The suite.
        preparation: Its cells, with their locks.
        exclusions: Excluded cells, with their reasons.
        directory: The run directory.
    """

    context: ProjectContext
    options: SuiteRunOptions
    suite: Suite
    preparation: Preparation
    exclusions: tuple[Exclusion, ...]
    directory: RunDirectory

    def collect(self) -> CollectedRun:
        """Collect the tests, and write the description of the run.

        Raises:
            NothingSelectedError: If there are no tests, or no cell can run any.
            UsageError: If pytest cannot collect anything anywhere.
            InfrastructureError: If no cell can be provided, or the disk refuses.
        """
        options, cells = self.options, self.preparation.cells
        inside = SuiteInCells(
            self.suite, self.context, self.preparation.locks,
            slots=options.jobs, fresh=options.fresh, cluster=options.cluster,
        )  # fmt: skip
        cases, executor = inside.collect(cells)
        plan = make_plan(cases, cells, self.exclusions)
        info = make_run_info(
            plan, request={}, matrix=options.matrix or ("" if options.cell else DEFAULT_MATRIX),
            root=self.suite.root, suite=options.describe(self.suite),
        )  # fmt: skip
        # Before the first test, so that a report of a killed run knows its tests and cells.
        self.directory.write_run(info)
        return CollectedRun(origin=self, plan=plan, executor=executor, info=info)


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectedRun:
    """A run of a suite whose tests are collected.

    Attributes:
        origin: The run before its tests were collected.
        plan: The tests in their cells.
        executor: Runs them.
        info: The description of the run before the first test.
    """

    origin: SuiteRun
    plan: Plan
    executor: AnySuiteExecutor
    info: RunInfo

    @property
    def attempts(self) -> int:
        """Attempts of all tests together."""
        return len(self.plan.jobs) * (self.origin.options.repeat or 1)

    def execute(
        self, progress: Callable[[Record], None], rerun: Callable[[Record], None]
    ) -> list[Record]:
        """Run every test, and return the record of each.

        Args:
            progress: Called with the record of each attempt, also of repeated ones.
            rerun: See `conformance.engine.runner.Run`.

        Raises:
            InfrastructureError: If the disk refuses.
        """
        options, directory = self.origin.options, self.origin.directory
        session = Session(context=self.origin.context, fresh=options.fresh)
        judge = session.make_judge(directory.blobs)
        if options.repeat is None:
            run = Run(
                self.plan, directory, self.executor, session.results, judge, progress=progress,
                rerun=rerun,
            )  # fmt: skip
            return run.execute()
        return RepeatedRun(
            plan=self.plan, directory=directory, executor=self.executor,
            cache=session.results, judge=judge, progress=progress,
            times=options.repeat, seed=options.repeat_seed,
        ).execute()  # fmt: skip

    def conclude(self, records: Sequence[Record]) -> tuple[Report, ExitCode]:
        """Write the result, and return the report on the run and its exit status.

        Args:
            records: The records of the tests.

        Raises:
            InfrastructureError: If the disk refuses.
        """
        directory = self.origin.directory
        # A suite is not compared with an earlier run: its known failures are the expectation.
        code, reason = decide_exit(FailOn.UNEXPECTED, records)
        info = replace(finish_run(self.info, code, self.executor.identities), exit_reason=reason)
        directory.write_run(info)
        return Report((LoadedRun.of(directory, info, records),)), code

    def render_lines(
        self, report: Report, records: Sequence[Record], *, every: bool
    ) -> Iterator[str]:
        """Yield the results in lines.

        Args:
            report: The report on the run.
            records: The records of the tests.
            every: Whether every test that fails is named, with its traceback.
        """
        yield from render_suite(
            records, report.causes, {job.case.id: job.case for job in self.plan.jobs},
            self.plan.exclusions,
            named={one.cell.id: one.cell.selector for one in self.plan.cells},
            warnings=collect_warnings(
                report.jobs.values(), report.cells, read_collection_warnings(report.runs)
            ),
            tracebacks=partial(render_cause_tracebacks, report.render_traceback, every=every),
            every=every,
        )  # fmt: skip
        options = self.origin.options
        if options.repeat is not None:
            orders = f"the orders of --repeat-seed {options.repeat_seed}"
            yield f"each test {options.repeat} times, in {orders}"
        yield from render_exit(report)
        yield f"results in {self.origin.directory.path}"


def prepare_suite_run(context: ProjectContext, options: SuiteRunOptions) -> SuiteRun:
    """Look up the suite and its cells, and make the run directory.

    Args:
        context: The project.
        options: The options.

    Raises:
        UsageError: If there is no such suite, or the options do not go with it.
        NothingSelectedError: If there are no cells.
        InfrastructureError: If a named suite cannot be fetched, or the disk refuses.
    """
    suite = make_suite(
        options.words, timeout=options.timeout, wanted=options.wanted, start=Path.cwd(),
        examples=options.suite.examples, standard=options.suite.standard,
        home=SuiteHome(context=context, path=options.suite.path),
    )  # fmt: skip
    cells, left_out = context.select_cells(options.matrix, options.cell)
    preparation = prepare_suite(
        context, cells, resolve_suite_requirements(context, options.wanted, suite)
    )
    # The run directory is made last: a request without cells leaves none behind.
    exclusions = (*left_out, *preparation.exclusions)
    if not preparation.cells:
        reasons = "; ".join(f"{one.cell}: {one.reason}" for one in exclusions)
        raise NothingSelectedError(f"nothing to run; {reasons or 'the matrix has no cells'}")
    return SuiteRun(
        context=context, options=options, suite=suite, preparation=preparation,
        exclusions=exclusions, directory=context.runs.allocate(),
    )  # fmt: skip
