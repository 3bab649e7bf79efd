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


@click.command("history", short_help="Keep what a named suite says of releases.")
@click.argument("name", type=SUITES)
@click.argument("runs", nargs=-1, metavar="[RUN|DIR]...", type=click.Path(path_type=Path))
@click.option(
    "--file", "file", metavar="FILE", type=click.Path(path_type=Path),
    help="The data; the page is beside it.  [default: reports/TITLE.json]",
)  # fmt: skip
@click.option("--check", is_flag=True, help="Write nothing; only see whether the page is current.")
def history(*, name: str, runs: tuple[Path, ...], file: Path | None, check: bool) -> int:
    """Keep what a named suite says of releases, group by group.

    RUN is the directory of a complete run of the suite, DIR a folder of some: their releases come
    to those that the data have, and replace what these say of the same releases. Releases that are
    there need not be run again. A run is judged by the known failures as they are declared now:
    accepting some asks for no new run. What the suite does not test is told from the goldens of
    our own cases. Without a run the page is made anew from the data.

    \b
    conformance suite run array-api-tests --matrix releases
    conformance suite history array-api-tests reports/runs/20261122-152459-661978c
    conformance suite history array-api-tests --check

    A run of another revision of the suite, of other settings or on another platform does not go
    with what is there, for a difference would say nothing about JAX: keep it under another --file,
    or remove the data and begin anew with runs of every release.

    Exit status: 0 written, or current; 1 with --check: not current; 2 usage, as a run that is not
    complete.
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
