"""`conformance suite accept` and `conformance suite history`: records made from runs of a suite."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from conformance.app.context import load_context
from conformance.app.output_files import print_note
from conformance.app.suites.acceptance import accept_suite_runs, find_newest_suite_run
from conformance.app.suites.history import update_history
from conformance.cli.options import HiddenArgument
from conformance.cli.output import json_option
from conformance.cli.words import SUITES
from conformance.model.outcome import ExitCode
from conformance.suites.catalogue.definition import load_suite
from conformance.wording import plural

if TYPE_CHECKING:
    from conformance.cli.output import Output


@click.command("accept", short_help="Update the known failures of a suite from its runs.")
@click.argument("name", type=SUITES)
@click.argument("more_runs", cls=HiddenArgument, nargs=-1)
@click.option(
    "--run", "runs", multiple=True, metavar="RUN",
    help="Directory or id of a complete run of the suite; repeatable.  "
    "[default: the newest finished run]",
)  # fmt: skip
@click.option("--dry-run", is_flag=True, help="Show what would change, and write nothing.")
@json_option("the numbers of changes")
def accept(
    *,
    name: str,
    more_runs: tuple[str, ...],
    runs: tuple[str, ...],
    dry_run: bool,
    output: Output,
) -> int:
    """Update the known failures of the suite NAME from its runs.

    A failing test becomes a deviation of its releases, and a passing test ends one. A release
    represents those up to the next one in the runs. Declarations that the runs do not contradict,
    and those of other releases, are kept. Flaky tests, interrupted cells, nightlies and
    development builds are ignored.

    conformance suite accept array-api-tests --dry-run
    conformance suite accept array-api-tests
    conformance suite accept array-api-tests --run reports/runs/ID1 --run reports/runs/ID2

    Review the result: a new reason is the first line of the error until you replace it. Exit
    status: 0 all failures are declared, 1 some are not, for the printed reasons.
    """
    context = load_context()
    suite = load_suite(name, context.project.suites)
    directories = [context.runs.open(run) for run in (*more_runs, *runs)]
    # A part of a suite, or an interrupted run, is never chosen by default.
    if not directories:
        directories = [find_newest_suite_run(context, name)]
        # The run is named only if the user did not name it.
        output.print(f"from {directories[0].path}")
    accepted = accept_suite_runs(context, suite, directories, dry_run=dry_run)
    output.print(*accepted.lines)
    output.write_json(accepted.data)
    return 1 if accepted.refused else 0


@click.command("history", short_help="Record the results of a named suite by release.")
@click.argument("name", type=SUITES)
@click.argument("folders", nargs=-1, metavar="[DIR]...", type=click.Path(path_type=Path))
@click.option(
    "--run", "runs", multiple=True, metavar="RUN",
    help="Directory or id of a complete run of the suite; repeatable.",
)  # fmt: skip
@click.option(
    "--file", "file", metavar="FILE", type=click.Path(path_type=Path),
    help="File of the data; its page has the same name.  [default: reports/TITLE.json]",
)  # fmt: skip
@click.option(
    "--check", is_flag=True, help="Write nothing; only check whether the page is current."
)
@json_option("the releases and the written files")
def history(
    *,
    name: str,
    folders: tuple[Path, ...],
    runs: tuple[str, ...],
    file: Path | None,
    check: bool,
    output: Output,
) -> int:
    """Record the results of a named suite by release and group of tests.

    DIR is a folder of runs, or the directory of a run. The releases of the runs are added to the
    data, and replace equal ones; other releases need not run again. Runs are judged by the current
    known failures, so that accepting failures needs no new run. The goldens of the project's own
    cases cover what the suite does not test. Without a run, the page is rendered from the data.

    conformance suite run array-api-tests --matrix releases
    conformance suite history array-api-tests --run reports/runs/20261122-152459-661978c
    conformance suite history array-api-tests --check

    A run of another revision, with other settings or on another platform cannot be added, because
    a difference would not be about JAX: use another --file, or remove the data and start with runs
    of every release.

    Exit status: 0 written, or current; 1 with --check: not current; 2 usage, or an incomplete run.
    """
    context = load_context()
    suite = load_suite(name, context.project.suites)
    paths = (*folders, *(context.runs.open(run).path for run in runs))
    update = update_history(context, suite, paths, file, check=check)
    output.write_json(update.data)
    # Whether the page is current is the exit status; a stale page raised above.
    if check:
        return ExitCode.OK
    output.print(update.summary)
    # A new test of the suite needs a group, which only a person can choose.
    if ungrouped := update.ungrouped_tests:
        print_note(f"{plural(len(ungrouped), 'test')} in no group, such as {ungrouped[0]}")
    return ExitCode.OK
