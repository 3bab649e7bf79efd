"""`conformance suite`: a user's own pytest suite, run in cells."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from conformance.app.context import default_jobs, load_context
from conformance.app.notes import print_note
from conformance.app.output_files import check_writable
from conformance.app.suite_run import SuiteRunOptions, prepare_suite_run
from conformance.cli import suite_accept, suite_fetch
from conformance.cli.console import open_console
from conformance.cli.options import cells_options, json_option, site_option, with_option
from conformance.cli.progress import live_progress
from conformance.cli.run_output import hand_out
from conformance.cli.suite_history import history
from conformance.cli.suite_options import in_suite_options
from conformance.cli.words import SUITES
from conformance.model.outcome import ExitCode
from conformance.suites.suite import TIMEOUT

if TYPE_CHECKING:
    from pathlib import Path


@click.group("suite")
def command() -> None:
    """Run a pytest suite in cells, each test as a job.

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
@in_suite_options
@click.option(
    "--timeout", type=click.FloatRange(0.1), metavar="SECONDS",
    help=f"Timeout of one test with its fixtures.  [default: of the suite, {TIMEOUT:g} for a path]",
)  # fmt: skip
@click.option(
    "--jobs", "-j", type=click.IntRange(1, 256), default=default_jobs,
    show_default="one per core", help="Number of parallel pytest workers.",
)  # fmt: skip
@click.option("--fresh", is_flag=True, help="Ignore cached results.")
@click.option(
    "--repeat", type=click.IntRange(2, 1000), metavar="N",
    help="Run each test N times to detect flaky tests.",
)  # fmt: skip
@click.option(
    "--repeat-seed", type=click.IntRange(0), default=0, show_default=True, metavar="N",
    help="Seed of the orders of --repeat.",
)  # fmt: skip
@json_option("the whole result")
@site_option
@click.option("--verbose", "-v", is_flag=True, help="Show every failing test with its traceback.")
def run(*, json_file: Path | None, site: bool | None, verbose: bool, **given: Any) -> int:
    """Run a pytest suite in cells.

    NAME is a named suite. PATH is a file or folder of tests, or the node id of a test. Arguments
    after -- are passed to pytest. The suite's configuration, conftest files, markers and plugins
    apply as usual. pytest is installed; add other requirements with --with.

    \b
    conformance suite run tests --with ./my-package --matrix releases
    conformance suite run tests --with . --with pytest-xdist --cell 0.5.3 --cell latest
    conformance suite run tests/test_loss.py --cell '>=0.8' -- -k "not slow"
    conformance suite run 'tests/test_loss.py::test_mean[bf16]' --cell 0.6.2
    conformance suite run tests --cell path:/opt/env/bin/python
    conformance suite run tests --cell latest --repeat 10

    With --repeat N each test runs N times, in fresh processes and another order each time. A test
    whose attempts disagree is flaky, and the report counts its results.

    A test that crashes or times out does not affect other tests. Failures are rerun before they are
    reported. Results are cached until the suite, its project, the packages or the cell change.

    Exit status: 0 all tests pass, are skipped, or fail as declared; 1 a test fails, 2 usage, or the
    suite cannot be collected, 3 no tests, 4 infrastructure, 70 internal error, 130 interrupted.
    """  # noqa: D301 - \b is click's own mark
    context = load_context()
    if json_file is not None:
        check_writable("--json", json_file)
    options = SuiteRunOptions(**given)
    prepared = prepare_suite_run(context, options)
    console = open_console(json_file)
    try:
        with console.status("collecting", spinner="line"):
            collected = prepared.collect()
        cells = len(collected.plan.cells)
        with live_progress(console, collected.attempts, cells) as progress:
            records = collected.execute(progress)
    except KeyboardInterrupt:
        print_note(f"interrupted; {options.remedy}")
        return ExitCode.INTERRUPTED
    report, code = collected.conclude(records)
    for line in collected.lines(report, records, every=verbose):
        console.print(line)
    hand_out(report, prepared.directory, console, json_file=json_file, site=site)
    return code


command.add_command(suite_accept.command)
command.add_command(suite_fetch.fetch)
command.add_command(suite_fetch.list_suites)
