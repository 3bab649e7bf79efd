"""`conformance suite accept`: the known failures of a suite, from what its runs showed."""

from __future__ import annotations

from pathlib import Path

import click

from conformance.app.context import load_context
from conformance.app.suite_acceptance import accept_suite_runs, newest_suite_run
from conformance.cli.words import SUITES
from conformance.engine.run_directory import RunDirectory
from conformance.suites.catalogue.definition import named_suite


@click.command("accept", short_help="Update the known failures of a suite from its runs.")
@click.argument("name", type=SUITES)
@click.argument(
    "runs", nargs=-1, metavar="[RUN]...",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
)  # fmt: skip
@click.option("--dry-run", is_flag=True, help="Show what would change, and write nothing.")
def command(*, name: str, runs: tuple[Path, ...], dry_run: bool) -> int:
    """Update the known failures of the suite NAME from its runs.

    RUN is the directory of a complete run of the suite; the newest finished one by default. A
    failing test becomes a deviation of its releases, and a passing test ends one. A release
    represents those up to the next one in the runs. Declarations that the runs do not contradict,
    and those of other releases, are kept. Flaky tests, interrupted cells, nightlies and
    development builds are ignored.

    \b
    conformance suite accept array-api-tests --dry-run
    conformance suite accept array-api-tests
    conformance suite accept array-api-tests reports/runs/ID1 reports/runs/ID2

    Review the result: a new reason is the first line of the error until you replace it. Exit
    status: 0 all failures are declared, 1 some are not, for the printed reasons.
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
