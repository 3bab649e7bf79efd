"""`conformance accept`: store the results of a run as goldens."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from conformance.app.acceptance import (
    accept_run,
    acceptance_data,
    acceptance_lines,
    convert_goldens,
    remove_goldens_of_no_case,
)
from conformance.app.context import load_context
from conformance.app.run_request import request_of
from conformance.cli.options import recorded_options
from conformance.cli.words import CASES
from conformance.engine.run_directory import RunDirectory, latest_run
from conformance.errors import UsageError
from conformance.files import readable_json
from conformance.report.text import sanitize

if TYPE_CHECKING:
    from pathlib import Path


@click.command("accept")
@click.argument("select", nargs=-1, type=CASES)
@recorded_options
@click.option("--gone", is_flag=True, help="Remove the goldens of removed cases instead.")
@click.option("--migrate", is_flag=True, help="Convert goldens of an older format instead.")
@click.option("--dry-run", is_flag=True, help="Show what would change, and write nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(
    *,
    select: tuple[str, ...],
    run_dir: Path | None,
    cell: tuple[str, ...],
    gone: bool,
    migrate: bool,
    dry_run: bool,
    as_json: bool,
) -> int:
    """Make the results of a run the goldens.

    Undeclared deviations, crashes, timeouts and flaky jobs are not accepted: declare a deviation
    first, or fix the case. Results of nightlies and development builds are never accepted. Cases,
    cells and releases that are not in the run keep their goldens. Nothing is written if the
    variable CI is set. `conformance review` shows the changes first.

    \b
    conformance accept                                   all of the newest run
    conformance accept shard_map_while/fixed_point       one case
    conformance accept --run reports/runs/ID --dry-run
    conformance accept --gone                            after cases were renamed or removed
    conformance accept --migrate                         after an upgrade of this package
    """  # noqa: D301 - \b is click's own mark
    context = load_context()
    if gone:
        if select or run_dir or cell:
            raise UsageError("--gone is about all cases of the project: no SELECT, --run or --cell")
        removed = remove_goldens_of_no_case(context, dry_run=dry_run)
        if as_json:
            click.echo(readable_json({"removed": removed}))
        else:
            for file in removed:
                click.echo(sanitize(file))
            click.echo(f"{len(removed)} {'to remove' if dry_run else 'removed'}")
        return 0
    if migrate:
        if run_dir or cell:
            raise UsageError("--migrate is about goldens on disk: no --run or --cell")
        result = convert_goldens(context, select, dry_run=dry_run)
        done = "to convert" if dry_run else f"converted, {len(result['removed'])} files removed"
        click.echo(readable_json(result) if as_json else f"{len(result['converted'])} {done}")
        return 0
    directory = RunDirectory(run_dir) if run_dir else latest_run(context.project.root)
    planned = request_of(directory).select
    accepted = accept_run(context, directory, planned, select=select, cells=cell, dry_run=dry_run)
    if as_json:
        click.echo(readable_json(acceptance_data(accepted)))
    else:
        for line in acceptance_lines(accepted):
            click.echo(line)
    return 1 if accepted.refused else 0
