"""`conformance suite`: run a pytest suite in cells."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from conformance.app.context import load_context
from conformance.app.suites.run import SuiteRunOptions, prepare_suite_run
from conformance.cli import suite_fetch, suite_records
from conformance.cli.executor_options import executor_options
from conformance.cli.options import (
    cells_options,
    fresh_option,
    timeout_option,
    with_option,
)
from conformance.cli.output import json_option
from conformance.cli.progress import explain_interrupt, live_progress
from conformance.cli.run_options import cache_options, site_option, write_outputs
from conformance.cli.target_options import suite_options
from conformance.cli.words import SUITES
from conformance.suites.suite import TIMEOUT

if TYPE_CHECKING:
    from conformance.cli.output import Output


@click.group("suite")
def command() -> None:
    """Run a pytest suite in cells, each test as a job.

    conformance suite run tests --with ./my-package --matrix releases
    conformance upgrade 0.5.3 latest --suite tests --with ./my-package
    """


@command.command("run", short_help="Run a suite in cells.")
@click.argument(
    "words", type=SUITES, metavar="NAME|PATH... [-- PYTEST ARGUMENTS...]", nargs=-1, required=True
)
@cells_options
@with_option
@suite_options
@timeout_option(
    f"Timeout of one test with its fixtures.  [default: of the suite, {TIMEOUT:g} for a path]"
)
@executor_options("Number of parallel pytest workers.")
@fresh_option
@cache_options
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
def run(*, output: Output, site: bool | None, verbose: bool, **given: Any) -> int:
    """Run a pytest suite in cells.

    NAME is a named suite. PATH is a file or folder of tests, or the node id of a test. Arguments
    after -- are passed to pytest. The suite's configuration, conftest files, markers and plugins
    apply as usual. pytest is installed; add other requirements with --with.

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
    """
    context = load_context()
    options = SuiteRunOptions(**given)
    prepared = prepare_suite_run(context, options)
    console = output.console
    with explain_interrupt(options.remedy):
        # Inside of the interrupt block: collecting starts workers, and can be resumed, too.
        with console.status("collecting", spinner="line"):
            collected = prepared.collect()
        cells = len(collected.plan.cells)
        with live_progress(console, collected.attempts, cells) as progress:
            records = collected.execute(progress.take, progress.rerun)
    report, code = collected.conclude(records)
    output.print(*collected.render_lines(report, records, every=verbose))
    write_outputs(report, prepared.directory, output, site=site)
    return code


# Added here, not by decorators, so that the modules do not import this one.
command.add_command(suite_records.accept)
command.add_command(suite_fetch.fetch)
command.add_command(suite_records.history)
command.add_command(suite_fetch.list_suites)
