"""`conformance suite history`: what a named suite says of releases, kept and committed."""

from __future__ import annotations

from pathlib import Path

import click

from conformance.app.context import load_context
from conformance.app.notes import print_note
from conformance.app.suite_history import update_history
from conformance.cli.words import SUITES
from conformance.model.outcome import ExitCode
from conformance.suites.catalogue.definition import named_suite
from conformance.wording import plural


@click.command("history", short_help="Record the results of a named suite by release.")
@click.argument("name", type=SUITES)
@click.argument("runs", nargs=-1, metavar="[RUN|DIR]...", type=click.Path(path_type=Path))
@click.option(
    "--file", "file", metavar="FILE", type=click.Path(path_type=Path),
    help="File of the data; its page is beside it.  [default: reports/TITLE.json]",
)  # fmt: skip
@click.option(
    "--check", is_flag=True, help="Write nothing; only check whether the page is current."
)
def history(*, name: str, runs: tuple[Path, ...], file: Path | None, check: bool) -> int:
    """Record the results of a named suite by release and group of tests.

    RUN is the directory of a complete run of the suite, DIR a folder of runs. Their releases are
    added to the data, and replace equal ones; other releases need not run again. Runs are judged by
    the current known failures, so that accepting failures needs no new run. The goldens of the
    project's own cases cover what the suite does not test. Without a run, the page is rendered from
    the data.

    \b
    conformance suite run array-api-tests --matrix releases
    conformance suite history array-api-tests reports/runs/20261122-152459-661978c
    conformance suite history array-api-tests --check

    A run of another revision, with other settings or on another platform cannot be added, because
    a difference would not be about JAX: use another --file, or remove the data and start with runs
    of every release.

    Exit status: 0 written, or current; 1 with --check: not current; 2 usage, or an incomplete run.
    """  # noqa: D301 - \b is click's own mark
    context = load_context()
    suite = named_suite(name, context.project.suites)
    update = update_history(context, suite, runs, file, check=check)
    if check:
        return ExitCode.OK
    click.echo(update.summary)
    if lost := update.ungrouped:
        print_note(f"{plural(len(lost), 'test')} in no group, such as {lost[0]}")
    return ExitCode.OK
