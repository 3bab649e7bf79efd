"""`conformance run`: the main job."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click
import msgspec

from conformance.app.context import DEFAULT_MATRIX, default_jobs, load_context
from conformance.app.nightlies import drop_untold, nights_of, with_its_nights
from conformance.app.output_files import check_writable, write_file
from conformance.app.session import Session
from conformance.app.shards import durations_of, part_of
from conformance.cells.cell import PATH_PREFIX
from conformance.cells.requirements import absolute_wanted
from conformance.cli.console import open_console
from conformance.cli.options import (
    all_option,
    cells_options,
    json_option,
    night_option,
    site_option,
    with_option,
)
from conformance.cli.progress import live_progress
from conformance.cli.since import Asked, concluded, fail_on_option, since_options
from conformance.cli.words import CASES
from conformance.engine.describing import describe, ended
from conformance.engine.loading import LoadedRun
from conformance.engine.plan import Plan, make_plan, possible_jobs
from conformance.engine.policy import FailOn
from conformance.engine.rundir import (
    ANEW,
    RUN,
    CorruptRunError,
    RunDirectory,
    latest_run,
    new_run,
)
from conformance.errors import InfrastructureError, NothingSelectedError, UsageError
from conformance.files import readable_json
from conformance.model.outcome import ExitCode
from conformance.report.data import report_json
from conformance.report.report import Report
from conformance.report.terminal import print_report

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.console import Console

    from conformance.app.context import ProjectContext
    from conformance.engine.prepare import Preparation
    from conformance.engine.runner import Run
    from conformance.model.record import Record
    from conformance.model.run import Exclusion, RunInfo
    from conformance.model.since import Since

_CONTINUE: Final = "continue it with --resume, or name another folder"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What was asked for: kept in `run.json`, so that a run can be resumed."""

    select: tuple[str, ...] = ()
    everything: bool = False
    """Whether it is about every case, though it names none."""
    matrix: str | None = None
    cell: tuple[str, ...] = ()
    shard: str = "1/1"
    require_platform: bool = False
    wanted: tuple[str, ...] = ()
    fail_on: str = FailOn.UNEXPECTED
    night: str = ""
    nights: tuple[str, ...] = ()
    """Ids of the cells of nightlies that it began with."""


@click.command("run")
@click.argument("select", nargs=-1, type=CASES)
@all_option
@cells_options
@click.option(
    "--jobs", "-j", type=click.IntRange(1, 256), default=default_jobs,
    show_default="one a core", help="Jobs at the same time.",
)  # fmt: skip
@click.option("--run-dir", type=click.Path(path_type=Path, file_okay=False), help="Run directory.")
@click.option("--resume", is_flag=True, help="Continue --run-dir, or the newest run.")
@click.option("--fresh", is_flag=True, help="Run every job, also those that have not changed.")
@click.option("--shard", default="1/1", metavar="I/N", help="Run the I-th of N equal parts.")
@click.option(
    "--require-platform", is_flag=True,
    help="An accelerator (gpu, tpu) that is not there is an error, not unsupported.",
)  # fmt: skip
@click.option("--spawn", is_flag=True, help="A fresh interpreter per job instead of a fork.")
@with_option
@night_option
@since_options
@fail_on_option(str(FailOn.UNEXPECTED))
@json_option("the whole result")
@site_option
@click.option(
    "--verbose", "-v", is_flag=True,
    help="Show every case, not only families, and the traceback of every unexpected job.",
)  # fmt: skip
def command(
    *,
    select: tuple[str, ...],
    everything: bool,
    matrix: str | None,
    cell: tuple[str, ...],
    jobs: int,
    run_dir: Path | None,
    resume: bool,
    fresh: bool,
    shard: str,
    require_platform: bool,
    wanted: tuple[str, ...],
    night: str,
    since: str | None,
    store: str | None,
    fail_on: str,
    spawn: bool,
    json_file: Path | None,
    site: bool | None,
    verbose: bool,
) -> int:
    """Run cases in cells and judge what they do.

    SELECT is a family, a case id, a glob, or the path of a file or folder of cases. The default is
    a smoke run: a sample of every family on four releases. With --all, --matrix or --cell it is
    every case.

    \b
    conformance run                                     the smoke run
    conformance run --all                               every case on these releases
    conformance run shard_map_while aot_placement       two families
    conformance run 'linearize_transpose/*grad*' --cell 0.5.3 --cell 0.6.2
    conformance run --matrix releases --json result.json
    conformance run --cell path:/opt/jax-dev/bin/python my/cases/topic.py
    conformance run --cell 'latest@tpu:v5e:2x2'         compiled for TPUs that are not here
    conformance run --cell path:/usr/bin/python3@gpu4   a container's own jax, on its GPUs
    conformance run --matrix nightly --cell path:/opt/jax-dev/bin/python
                                                        ... and that beside it
    conformance run --matrix nightly --fail-on new      what the last night showed is no news
    conformance run --resume                            after a crash or Ctrl-C
    """  # noqa: D301 - \b is click's own mark
    request = Request(
        select=select, everything=everything, matrix=matrix, cell=cell, shard=shard,
        require_platform=require_platform, wanted=wanted, fail_on=fail_on, night=night,
    )  # fmt: skip
    root = load_context().project.root
    asked = Asked(since=since, store=store, folder=root / "reports" / "runs")
    asked.check()
    if json_file is not None:
        check_writable("--json", json_file)
    directory, request = _opened(root, request, run_dir, resume=resume)
    context = load_context(request.night)
    console = open_console(json_file)
    request, planned, preparation = _plan(context, request, console)
    session = Session(
        context=context, fresh=fresh, spawn=spawn, require_platform=request.require_platform
    )
    run = session.run(planned, directory, preparation.locks, slots=jobs)
    info = info_of(_from_anywhere(request, context), planned, root)
    info = _begun(directory, info, planned, resume=resume)
    try:
        records = _executed(run, console)
    except KeyboardInterrupt:
        click.echo(f"conformance: interrupted; {_how_to_resume(directory)}", err=True)
        return ExitCode.INTERRUPTED
    came = concluded(directory, info, records, asked)
    info = came.told_by(ended(info, came.decision.code, run.executor.identities))
    directory.write_run(info)
    show(
        directory, info, records, console, came.since,
        json_file=json_file, site=site, verbose=verbose,
    )  # fmt: skip
    return came.decision.code


def _opened(
    root: Path, request: Request, run_dir: Path | None, *, resume: bool
) -> tuple[RunDirectory, Request]:
    """Return where a run is, and what it is asked for: of one that goes on, what it was."""
    if not resume:
        return _directory(root, run_dir, resume=False), request
    if request != Request():
        raise UsageError(
            "--resume continues a run as it was asked for: give no SELECT, --all, --matrix, "
            "--cell, --shard, --require-platform, --with, --night or --fail-on with it"
        )
    directory = _directory(root, run_dir, resume=True)
    return directory, request_of(directory)


def _executed(run: Run, console: Console) -> list[Record]:
    try:
        with live_progress(console, len(run.plan.jobs), len(run.plan.cells)) as run.progress:
            return run.execute()
    except InfrastructureError as error:
        raise InfrastructureError(f"{error}; {_how_to_resume(run.directory)}") from error


def show(
    directory: RunDirectory,
    info: RunInfo,
    records: Iterable[Record],
    console: Console,
    since: Since | None,
    *,
    json_file: Path | None,
    site: bool | None,
    verbose: bool,
) -> None:
    """Show what a run came to: in the terminal, as JSON, as pages.

    Args:
        directory: The run.
        info: What is said of it.
        records: Its jobs.
        console: Where to.
        since: What changed since the run before, None where there is none.
        json_file: Where JSON goes, None for nowhere.
        site: Whether pages are made; None for where there is a terminal.
        verbose: Whether every case is shown.
    """
    report = Report((LoadedRun.of(directory, info, records),), since=since)
    print_report(console, report, directory=directory.path, verbose=verbose)
    hand_out(report, directory, console, json_file=json_file, site=site)


def hand_out(
    report: Report,
    directory: RunDirectory,
    console: Console,
    *,
    json_file: Path | None,
    site: bool | None,
) -> None:
    """Write what a run came to as JSON and as pages, where that is asked for.

    Args:
        report: What it came to.
        directory: The run.
        console: What tells whether there is a terminal.
        json_file: Where JSON goes, None for nowhere.
        site: Whether pages are made; None for where there is a terminal.
    """
    if json_file is not None:
        write_file("--json", json_file, readable_json(report_json(report)))
    if site or (site is None and console.is_terminal):
        write_site_of(directory.path)


def _begun(directory: RunDirectory, info: RunInfo, plan: Plan, *, resume: bool) -> RunInfo:
    """Write what is known before the first job; a run that goes on began when it began.

    The directory is held until the command ends.
    """
    click.get_current_context().with_resource(directory.held())
    if resume:
        info = replace(info, started=directory.read_run().started or info.started)
        drop_untold(directory, plan)
    else:
        directory.check_empty(_CONTINUE)  # another run may have come first
    directory.write_run(info)
    return info


def write_site_of(run: Path) -> None:
    """Write the site of a run by the command that does, which is imported only now."""
    click_context = click.get_current_context()
    group = click_context.find_root().command
    command = group.get_command(click_context, "report") if isinstance(group, click.Group) else None
    if command is not None:
        click_context.invoke(command, runs=(run,))


def _directory(root: Path, given: Path | None, *, resume: bool) -> RunDirectory:
    if resume:
        return RunDirectory(given) if given else latest_run(root)
    if given is None:
        return new_run(root)
    directory = RunDirectory(given)
    directory.check_empty(_CONTINUE)
    return directory


def request_of(directory: RunDirectory) -> Request:
    """Return what a run was asked for.

    Raises:
        CorruptRunError: If `run.json` does not say.
    """
    stored = directory.read_run().request
    if not stored:
        raise CorruptRunError(f"{directory.path / RUN}: does not say what was asked for; {ANEW}")
    try:
        return msgspec.convert(stored, Request)
    except msgspec.ValidationError as error:
        raise CorruptRunError(
            f"{directory.path / RUN}: request: {str(error).lower()}; {ANEW}"
        ) from None


def _plan(
    context: ProjectContext, request: Request, console: Console
) -> tuple[Request, Plan, Preparation]:
    """Return what is asked for with the nights that it means, what to run, and in what cells."""
    cases, count = context.cases_of_run(
        request.select, given=(request.matrix, request.cell), everything=request.everything
    )
    if len(cases) < count:
        console.print(f"smoke run: {len(cases)} of {count:,} case ids; all: conformance run --all")
    meant, left_out = context.cells(request.matrix, request.cell)
    cells = with_its_nights(meant, request.nights, context.releases)
    preparation = Session(context=context).prepare(cells, request.wanted)
    whole = make_plan(cases, preparation.cells, (*left_out, *preparation.exclusions))
    if not whole.jobs:
        raise NothingSelectedError(nothing_to_run(whole.exclusions))
    request = replace(request, nights=nights_of(cells))
    possible = possible_jobs(cases, cells)
    part = part_of(whole, possible, request.shard, durations_of(context))
    return request, part, preparation


def nothing_to_run(exclusions: tuple[Exclusion, ...]) -> str:
    """Return the message for a plan without jobs.

    Args:
        exclusions: What is left out of it.
    """
    reasons = dict.fromkeys(
        f"{exclusion.case or 'every case'} on {exclusion.cell}: {exclusion.reason}"
        for exclusion in exclusions
    )
    shown = list(reasons)[:5]
    more = f" (and {len(reasons) - len(shown)} more)" if len(reasons) > len(shown) else ""
    return f"nothing to run; {'; '.join(shown) or 'the matrix has no cells'}{more}"


def info_of(request: Request, plan: Plan, root: Path) -> RunInfo:
    """Return what is known of a run before its first job.

    Args:
        request: What was asked for.
        plan: What came of it.
        root: Folder of the project.
    """
    matrix = request.matrix or ("" if request.cell else DEFAULT_MATRIX)
    return describe(plan, request=msgspec.to_builtins(request), matrix=matrix, root=root)


def _from_anywhere(request: Request, context: ProjectContext) -> Request:
    """Return a request that means the same when it is resumed in another working directory."""
    matrix = request.matrix
    if matrix is not None and (matrix.endswith(".toml") or len(Path(matrix).parts) > 1):
        matrix = str(Path(matrix).absolute())
    cell = tuple(
        f"{PATH_PREFIX}{Path(text.removeprefix(PATH_PREFIX)).expanduser().absolute()}"
        if text.startswith(PATH_PREFIX)
        else text
        for text in request.cell
    )
    return replace(
        request, select=context.absolute(request.select), matrix=matrix, cell=cell,
        wanted=tuple(map(absolute_wanted, request.wanted)),
    )  # fmt: skip


def _how_to_resume(directory: RunDirectory) -> str:
    return f"continue with: conformance run --resume --run-dir {directory.path}"
