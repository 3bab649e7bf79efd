"""`conformance accept`: store the results of a run as goldens."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from conformance.app.acceptance import (
    accept_run,
    convert_goldens,
    make_acceptance_json,
    remove_goldens_of_no_case,
    render_acceptance,
)
from conformance.app.context import load_context
from conformance.cli.options import recorded_options
from conformance.cli.output import json_option
from conformance.cli.words import CASES
from conformance.errors import UsageError
from conformance.report.text import sanitize

if TYPE_CHECKING:
    from conformance.cli.output import Output


@click.command("accept")
@click.argument("select", nargs=-1, type=CASES)
@recorded_options
@click.option("--gone", is_flag=True, help="Remove the goldens of removed cases instead.")
@click.option("--migrate", is_flag=True, help="Convert goldens of an older format instead.")
@click.option("--dry-run", is_flag=True, help="Show what would change, and write nothing.")
@json_option("the changed goldens")
def command(
    *,
    select: tuple[str, ...],
    run: str | None,
    cell: tuple[str, ...],
    gone: bool,
    migrate: bool,
    dry_run: bool,
    output: Output,
) -> int:
    """Make the results of a run the goldens.

    Undeclared deviations, crashes, timeouts and flaky jobs are not accepted: declare a deviation
    first, or fix the case. Results of nightlies and development builds are never accepted. Cases,
    cells and releases that are not in the run keep their goldens. Nothing is written if the
    variable CI is set. `conformance review` shows the changes first.

    conformance accept                                   all of the newest run
    conformance accept shard_map_while/fixed_point       one case
    conformance accept --run reports/runs/ID --dry-run
    conformance accept --gone                            after cases were renamed or removed
    conformance accept --migrate                         after an upgrade of this package
    """
    context = load_context()
    if gone:
        # Refused, not ignored: with a SELECT the user expects other goldens to stay.
        if select or run or cell:
            raise UsageError("--gone is about all cases of the project: no SELECT, --run or --cell")
        removed = remove_goldens_of_no_case(context, dry_run=dry_run)
        count = f"{len(removed)} {'to remove' if dry_run else 'removed'}"
        output.show({"removed": removed}, [*map(sanitize, removed), count])
        return 0
    if migrate:
        # A SELECT is allowed: goldens of some families can be converted first.
        if run or cell:
            raise UsageError("--migrate is about goldens on disk: no --run or --cell")
        result = convert_goldens(context, select, dry_run=dry_run)
        done = "to convert" if dry_run else f"converted, {len(result['removed'])} files removed"
        output.show(result, [f"{len(result['converted'])} {done}"])
        return 0
    accepted = accept_run(
        context, context.runs.open(run), select=select, cells=cell, dry_run=dry_run
    )
    output.show(make_acceptance_json(accepted), render_acceptance(accepted))
    # A script learns that something is left to decide; a dry run ends with the same status.
    return 1 if accepted.refused else 0
