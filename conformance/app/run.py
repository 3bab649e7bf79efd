"""A run of cases: planned, held in its directory, executed and concluded."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import msgspec

from conformance.app.case_choice import choose_cases
from conformance.app.context import DEFAULT_MATRIX, load_context
from conformance.app.durations import load_durations
from conformance.app.plan import check_any_job, plan_jobs, select_shard
from conformance.app.run_request import RunRequest, load_request
from conformance.app.session import Session
from conformance.app.since import conclude_run
from conformance.cells.cell import is_unresolved_id, parse_cell
from conformance.cells.nightly import make_stable_cell_ids
from conformance.cells.releases import is_nightly
from conformance.engine.plan import list_possible_jobs
from conformance.engine.runner import finish_run, make_run_info
from conformance.engine.runs.directory import RunDirectory
from conformance.errors import InfrastructureError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from conformance.app.cluster_choice import ClusterChoice
    from conformance.app.context import ProjectContext
    from conformance.app.plan import PlannedJobs
    from conformance.app.since import SinceOptions
    from conformance.cells.cell import Cell
    from conformance.cells.releases import Releases
    from conformance.engine.plan import Plan
    from conformance.engine.runner import Run
    from conformance.engine.runs.project_runs import ProjectRuns
    from conformance.model.outcome import ExitCode
    from conformance.model.record import Record
    from conformance.model.run import RunInfo
    from conformance.report.report import Report


def select_nightlies(cells: Iterable[Cell]) -> tuple[str, ...]:
    """Return the ids of the nightly cells among some cells."""
    return tuple(c.id for c in cells if c.is_unresolved or is_nightly(c.release))


def restore_nightlies(
    cells: Sequence[Cell], nights: Iterable[str], releases: Releases
) -> tuple[Cell, ...]:
    """Return the cells of a resumed run, with the nightlies that it began with.

    A nightly that could not be resolved at that time is resolved now.

    Args:
        cells: The cells as their selectors resolve now.
        nights: Ids of the nightly cells that the run began with.
        releases: Known releases.
    """
    # The date is part of the id of a nightly cell: only its stable id matches cells of two days.
    began = {place: cell for cell, place in make_stable_cell_ids(nights).items()}
    known = {place: cell for place, cell in began.items() if not is_unresolved_id(cell)}
    stable_ids = make_stable_cell_ids(select_nightlies(cells))
    return tuple(
        parse_cell(known[stable_ids[cell.id]], releases)
        if stable_ids.get(cell.id) in known
        else cell
        for cell in cells
    )


def drop_unresolved(directory: RunDirectory, plan: Plan) -> None:
    """Remove the records of unresolved nightlies that have been resolved in the meantime.

    Args:
        directory: The run.
        plan: The jobs of the resumed run.

    Raises:
        InfrastructureError: If the disk refuses.
    """
    planned = {job.id for job in plan.jobs}
    records = directory.read_records()
    remaining = [
        record
        for record in records
        if (record.case, record.cell) in planned or not is_unresolved_id(record.cell)
    ]
    # The file is append-only; it is rewritten only if a record has to go.
    if len(remaining) < len(records):
        directory.write_records(remaining)


_CONTINUE: Final = "continue it with --resume, or name another folder"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """The options of a run that do not change its jobs, so that `--resume` can change them.

    Attributes:
        run_dir: Directory of the run; None for a new one, or with `resume` for the newest.
        resume: Whether to continue an earlier run, with the request of that run.
        jobs: Jobs at the same time.
        fresh: Whether results of earlier runs do not count.
        spawn: Whether each job gets a fresh interpreter instead of a fork.
        cluster: Cluster that runs the jobs, None for this host.
    """

    run_dir: Path | None
    resume: bool
    jobs: int
    fresh: bool
    spawn: bool
    cluster: ClusterChoice | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StartedRun:
    """A run whose directory is locked and holds the description of its jobs.

    Attributes:
        run: The run; a caller that shows progress sets its `progress`.
        info: The description of the run before the first job.
    """

    run: Run
    info: RunInfo

    @property
    def directory(self) -> RunDirectory:
        """Directory of the run."""
        return self.run.directory

    @property
    def remedy(self) -> str:
        """The command that continues the run after an interrupt, in a sentence."""
        return f"continue with: conformance run --resume --run {self.directory.path}"

    def execute(self) -> list[Record]:
        """Run every job that has no record yet, and return the records of all.

        Raises:
            InfrastructureError: If the disk refuses.
        """
        try:
            return self.run.execute()
        except InfrastructureError as error:
            raise InfrastructureError(f"{error}; {self.remedy}") from error

    def conclude(
        self, records: Sequence[Record], compared: SinceOptions
    ) -> tuple[Report, ExitCode]:
        """Compare the run with an earlier one, and write the result.

        Args:
            records: Its records.
            compared: The run to compare with.

        Returns:
            The report on the run, and its exit status.

        Raises:
            InfrastructureError: If the disk refuses.
        """
        conclusion = conclude_run(self.directory, self.info, records, compared)
        code = conclusion.decision.code
        # The identities of cells are complete only now: workers report them when they start.
        info = finish_run(self.info, code, self.run.executor.identities)
        return conclusion.write(self.directory, info, records), code


@contextmanager
def start_run(
    request: RunRequest, options: RunOptions, say: Callable[[str], None]
) -> Iterator[StartedRun]:
    """Plan a run, and lock its directory.

    Args:
        request: The request of the run; with `--resume` that of the earlier run counts.
        options: The options that `--resume` can change.
        say: Receives a line if the run is a sample of the cases.

    Yields:
        The run, to be executed.

    Raises:
        UsageError: If the directory holds another run, or the options contradict each other.
        NothingSelectedError: If there are no jobs.
        CorruptRunError: If the run to be continued cannot be read.
        InfrastructureError: If the disk refuses.
    """
    # Without a night, which may be that of the stored request: the context is made again below.
    directory, request = _open_directory(load_context().runs, request, options)
    context = load_context(request.night)
    session = Session(
        context=context, fresh=options.fresh, spawn=options.spawn,
        require_platform=request.require_platform, cluster=options.cluster,
    )  # fmt: skip
    request, planned = _plan_run(session, request, say)
    # Nothing has been written up to here: an error leaves no run directory.
    run = session.make_run(planned.plan, directory, planned.preparation.locks, slots=options.jobs)
    info = describe_run(request.make_absolute(context), planned.plan, context.project.root)
    with directory.lock():
        if options.resume:
            # A resumed run keeps its start, by which reports order runs.
            info = replace(info, started=directory.read_run().started or info.started)
            drop_unresolved(directory, planned.plan)
        else:
            # Checked again under the lock: another run may have started while this one was planned.
            directory.check_empty(_CONTINUE)
        directory.write_run(info)
        # The description is on the disk before the first job, so that a killed run can be resumed.
        yield StartedRun(run=run, info=info)


def describe_run(request: RunRequest, plan: Plan, root: Path) -> RunInfo:
    """Return the description of a run before its first job.

    Args:
        request: Its request.
        plan: Its jobs.
        root: Folder of the project.
    """
    # With cells and no matrix the run belongs to no matrix, and is not compared with one.
    matrix = request.matrix or ("" if request.cell else DEFAULT_MATRIX)
    return make_run_info(plan, request=msgspec.to_builtins(request), matrix=matrix, root=root)


def _open_directory(
    runs: ProjectRuns, request: RunRequest, options: RunOptions
) -> tuple[RunDirectory, RunRequest]:
    """Return the directory of a run and its request: of one that is continued, the stored one."""
    run_dir = options.run_dir
    if not options.resume:
        if run_dir is None:
            return runs.allocate(), request
        directory = RunDirectory(run_dir)
        directory.check_empty(_CONTINUE)
        return directory, request
    # Any difference from the defaults is an option that would silently be ignored.
    if request != RunRequest():
        raise UsageError(
            "--resume continues a run as it was asked for: give no SELECT, --all, --matrix, "
            "--cell, --shard, --require-platform, --with, --night or --fail-on with it"
        )
    directory = RunDirectory(run_dir) if run_dir else runs.find_latest()
    return directory, load_request(directory)


def _plan_run(
    session: Session, request: RunRequest, say: Callable[[str], None]
) -> tuple[RunRequest, PlannedJobs]:
    """Return the jobs of a run, and its request with the nightlies that it means."""
    context: ProjectContext = session.context
    cases, count = choose_cases(context, request)
    # A sample must not be taken for a whole run.
    if len(cases) < count:
        say(f"smoke run: {len(cases)} of {count:,} case ids; all: conformance run --all")
    meant, left_out = context.select_cells(request.matrix, request.cell)
    # A new run has no nights, so this changes nothing for it.
    cells = restore_nightlies(meant, request.nights, context.releases)
    planned = plan_jobs(session, cases, cells, request.wanted, left_out)
    check_any_job(planned.plan)
    # Every runner splits the jobs that are possible on any host, so that all runners agree.
    part = select_shard(
        planned.plan, list_possible_jobs(cases, cells), request.shard, load_durations(context)
    )
    # The nightlies are stored in the request: resumed tomorrow, the run must not move to newer
    # ones.
    return replace(request, nights=select_nightlies(cells)), planned._replace(plan=part)
