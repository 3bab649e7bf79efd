"""`conformance suite`: a user's own pytest suite, run in cells."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from conformance.app.context import DEFAULT_MATRIX, default_jobs, load_context
from conformance.app.output_files import check_writable
from conformance.app.session import Session
from conformance.app.suites import SuiteHome, SuiteInCells, prepare_suite, suite_wanted
from conformance.cli import suite_accept, suite_fetch
from conformance.cli.console import open_console
from conformance.cli.options import cells_options, json_option, site_option, with_option
from conformance.cli.progress import live_progress
from conformance.cli.run_output import hand_out
from conformance.cli.suite_history import history
from conformance.cli.suite_options import suite_options
from conformance.cli.suite_repeat import repeat_options
from conformance.cli.words import SUITES
from conformance.engine.describing import describe, ended
from conformance.engine.loading import LoadedRun
from conformance.engine.plan import make_plan
from conformance.engine.policy import FailOn, exit_by
from conformance.engine.rundir import new_run
from conformance.errors import NothingSelectedError
from conformance.model.outcome import ExitCode
from conformance.report.notes import exit_lines
from conformance.report.report import Report
from conformance.report.suite_text import suite_lines
from conformance.report.tracebacks import cause_tracebacks
from conformance.report.warned import collected_warnings, warnings_of
from conformance.suites.suite import TIMEOUT, suite_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from conformance.cli.suite_repeat import Repeat
    from conformance.engine.plan import Plan
    from conformance.engine.prepare import Preparation
    from conformance.model.record import Record
    from conformance.model.run import Exclusion
    from conformance.suites.suite import Examples


@click.group("suite")
def command() -> None:
    """Run your own pytest suite in cells, each test a case of its own.

    \b
    conformance suite run tests --with ./my-package --matrix releases
    conformance upgrade 0.5.3 latest --suite tests --with ./my-package
    """  # noqa: D301 - \b is click's own mark


command.add_command(history)


@command.command("run", short_help="Run a suite in cells.")
@click.argument(
    "words", type=SUITES, metavar="NAME|PATH... [-- PYTEST ARGUMENTS...]", nargs=-1, required=True
)
@cells_options
@with_option
@suite_options
@click.option(
    "--timeout", type=click.FloatRange(0.1), metavar="SECONDS",
    help=f"Of one test, with its fixtures.  [default: as the suite says, {TIMEOUT:g} for a path]",
)  # fmt: skip
@click.option(
    "--jobs", "-j", type=click.IntRange(1, 256), default=default_jobs,
    show_default="one a core", help="Sessions of pytest at the same time.",
)  # fmt: skip
@click.option("--fresh", is_flag=True, help="Run every test, also those that have not changed.")
@repeat_options
@json_option("the whole result")
@site_option
@click.option(
    "--verbose", "-v", is_flag=True, help="Name every test that fails, with its traceback."
)
def run(
    *,
    words: tuple[str, ...],
    matrix: str | None,
    cell: tuple[str, ...],
    wanted: tuple[str, ...],
    suite_path: Path | None,
    examples: Examples,
    standard: str,
    timeout: float | None,
    jobs: int,
    fresh: bool,
    repeat: Repeat,
    json_file: Path | None,
    site: bool | None,
    verbose: bool,
) -> int:
    """Run a pytest suite in cells.

    PATH is a file or folder of tests, or the node of one test. What comes after -- is pytest's own.
    The suite's configuration, conftest files, markers and plugins count as ever; pytest itself is
    there, what else the suite needs is named by --with.

    \b
    conformance suite run tests --with ./my-package --matrix releases
    conformance suite run tests --with . --with pytest-xdist --cell 0.5.3 --cell latest
    conformance suite run tests/test_loss.py --cell '>=0.8' -- -k "not slow"
    conformance suite run 'tests/test_loss.py::test_mean[bf16]' --cell 0.6.2
    conformance suite run tests --cell path:/opt/env/bin/python
    conformance suite run tests --cell latest --repeat 10

    With --repeat N each test runs N times, in fresh processes and another order each time; one
    whose attempts disagree is flaky, with how many of them came to what.

    A test that crashes, or takes too long, ends itself alone: the others go on in a new session of
    pytest. A failure is seen twice before it is told. Nothing is run again that has not changed:
    neither the suite, its project, the packages, nor the cell.

    Exit status: 0 all pass, are skipped, or fail as they declare; 1 a test fails, 2 usage, or the
    suite cannot be collected, 3 no tests, 4 infrastructure, 70 internal
    error, 130 interrupted.
    """  # noqa: D301 - \b is click's own mark
    context = load_context()
    if json_file is not None:
        check_writable("--json", json_file)
    suite = suite_of(
        words, timeout=timeout, wanted=wanted, start=Path.cwd(), examples=examples,
        standard=standard, home=SuiteHome(context=context, path=suite_path),
    )  # fmt: skip
    console = open_console(json_file)
    cells, left_out = context.cells(matrix, cell)
    preparation = prepare_suite(context, cells, suite_wanted(context, wanted, suite))
    exclusions = (*left_out, *preparation.exclusions)
    _refuse_nothing(preparation, exclusions)
    inside = SuiteInCells(suite, context, preparation.locks, slots=jobs, fresh=fresh)
    directory = new_run(context.project.root)
    try:
        with console.status("collecting", spinner="line"):
            cases, executor = inside.collected(preparation.cells)
        plan = make_plan(cases, preparation.cells, exclusions)
        chosen = matrix or ("" if cell else DEFAULT_MATRIX)
        told = repeat.described(suite.described())
        info = describe(plan, request={}, matrix=chosen, root=suite.root, suite=told)
        directory.write_run(info)
        cache = Session(context=context, fresh=fresh).results
        with live_progress(console, len(plan.jobs) * repeat.each, len(plan.cells)) as progress:
            records = repeat.run(plan, directory, executor, cache, progress).execute()
    except KeyboardInterrupt:
        click.echo(f"conformance: interrupted; {repeat.restart}", err=True)
        return ExitCode.INTERRUPTED
    code, reason = exit_by(FailOn.UNEXPECTED, records)
    info = replace(ended(info, code, executor.identities), exit_reason=reason)
    directory.write_run(info)
    report = Report((LoadedRun.of(directory, info, records),))
    for line in (*_told(plan, report, records, every=verbose), *repeat.lines, *exit_lines(report)):
        console.print(line)
    console.print(f"results in {directory.path}")
    hand_out(report, directory, console, json_file=json_file, site=site)
    return code


command.add_command(suite_accept.command)
command.add_command(suite_fetch.fetch)
command.add_command(suite_fetch.list_suites)


def _told(plan: Plan, report: Report, records: Sequence[Record], *, every: bool) -> Iterator[str]:
    """Yield what came of a suite, in lines."""
    cases = {job.case.id: job.case for job in plan.jobs}
    named = {one.cell.id: one.cell.selector for one in plan.cells}
    warnings = warnings_of(report.jobs.values(), report.cells, collected_warnings(report.runs))
    yield from suite_lines(
        records, report.causes, cases, plan.exclusions, named=named, warnings=warnings,
        tracebacks=partial(cause_tracebacks, report, every=every), every=every,
    )  # fmt: skip


def _refuse_nothing(preparation: Preparation, exclusions: Iterable[Exclusion]) -> None:
    """Refuse to go on where no cell is left."""
    if not preparation.cells:
        reasons = "; ".join(f"{one.cell}: {one.reason}" for one in exclusions)
        raise NothingSelectedError(f"nothing to run; {reasons or 'the matrix has no cells'}")
