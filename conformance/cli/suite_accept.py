"""`conformance suite accept`: the known failures of a suite, from what its runs showed."""

from __future__ import annotations

from pathlib import Path

import click

from conformance.app.context import load_context
from conformance.app.suite_acceptance import accept_suite_runs, newest_suite_run
from conformance.cli.words import SUITES
from conformance.engine.rundir import RunDirectory
from conformance.suites.catalogue.definition import named_suite


@click.command("accept", short_help="Write the known failures of a suite from its runs.")
@click.argument("name", type=SUITES)
@click.argument(
    "runs", nargs=-1, metavar="[RUN]...",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
)  # fmt: skip
@click.option("--dry-run", is_flag=True, help="Show what would change, and write nothing.")
def command(*, name: str, runs: tuple[Path, ...], dry_run: bool) -> int:
    """Write the known failures of the suite NAME from what its runs showed.

    RUN is the directory of a run of the whole suite; by default it is the newest that ended. What
    fails becomes a deviation of the releases that show it, and what passes ends one; a release
    stands for those up to the next one that was seen. What the runs do not contradict stays as it
    is written, and releases that are not in them keep what is known of them. Nothing is learned
    from flaky tests, from cells that were cut short, from nightlies and development builds.

    \b
    conformance suite accept array-api-tests --dry-run
    conformance suite accept array-api-tests
    conformance suite accept array-api-tests reports/runs/ID1 reports/runs/ID2

    Read what comes of it: a new reason is the first line of the error until you write the true
    one. Exit status: 0 all was taken in, 1 some was not, for the reasons that are told.
    """  # noqa: D301 - \b is click's own mark
    context = load_context()
    suite = named_suite(name, context.project.suites)
    directories = [RunDirectory(path) for path in runs]
    if not directories:
        directories = [newest_suite_run(context, name)]
        click.echo(f"from {directories[0].path}")
    accepted = accept_suite_runs(context, suite, directories, dry_run=dry_run)
    for line in accepted.lines:
        click.echo(line)
    return 1 if accepted.refused else 0
