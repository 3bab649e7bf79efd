"""`conformance new`: turn a pasted script into a case."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from conformance.app.context import load_context
from conformance.app.new_case import NewOptions, port_script, write_case
from conformance.cli.options import jobs_option, timeout_option
from conformance.cli.output import json_option
from conformance.cli.words import CELLS, FAMILIES
from conformance.model.outcome import ExitCode
from conformance.triage.new.summary import (
    make_json,
    render_releases,
    render_summary,
    render_todo,
    render_undeclared,
)

if TYPE_CHECKING:
    from conformance.cli.output import Output


@click.command("new")
@click.argument("script")
@click.option(
    "--family",
    default="",
    metavar="FAMILY",
    type=FAMILIES,
    help="Family of the case.  [default: the best match]",
)
@click.option(
    "--topic", default="", metavar="TOPIC", help="Topic file of the case.  [default: reported]"
)
@click.option(
    "--name", default="", metavar="NAME", help="Name of the case.  [default: from the script]"
)
@click.option("--source", default="", metavar="OWNER/REPO#N", help="Upstream thread.")
@click.option(
    "--cell", multiple=True, metavar="SELECTOR", type=CELLS,
    help="Releases to try first; repeatable.  [default: five, and those in the report]",
)  # fmt: skip
@click.option("--good", default="", metavar="RELEASE", help="Release with the right value.")
@click.option(
    "--devices", type=click.IntRange(1), default=None, metavar="N", help="Number of devices."
)
@timeout_option("Timeout of one run.", default=60.0)
@click.option(
    "--cases", type=click.Path(path_type=Path, file_okay=False), metavar="DIR",
    help="Folder of the families.  [default: of the project]",
)  # fmt: skip
@click.option("--dry-run", is_flag=True, help="Print the case instead of writing it.")
@jobs_option("Number of parallel trials.")
@json_option("the case")
def command(*, script: str, dry_run: bool, output: Output, **options: Any) -> int:
    """Turn a pasted script into a case that declares its deviations.

    SCRIPT is a Python file, or a text with a fenced Python block, with or without prompts; - is
    standard input. `new` runs the script and the case on a few releases, finds the first release of
    each change, and declares the deviations for you to review.

    conformance new report.py
    conformance new issue.md --family shard_map_while --source jax-ml/jax#27664
    conformance new report.py --good 0.5.3          this release has the right value
    conformance new report.py --cell '>=0.6'        try all of these releases
    conformance new - --name psum_of_nothing --dry-run < report.py

    Nothing is written before all trials, and existing content of a file is kept. Exit status:
    0 written, 1 written, but the case does not declare everything that was observed.
    """
    new_options = NewOptions(dry_run=dry_run, **options)
    ported = port_script(load_context(), script, new_options, output.print)
    placement = ported.request.placement
    output.print("", *render_releases(ported), "", *render_summary(ported))
    if dry_run:
        # The text of the case alone; the file may have other cases, which stay as they are.
        output.print(f"\n{ported.text}")
    else:
        write_case(ported)
        output.print(f"\nwrote {placement.file}: {placement.id}, a {ported.draft.options.kind}")
    output.print(*(f"left to you: {line}" for line in render_todo(ported)))
    if dry_run:
        # The commands of the summary name a case that does not exist yet.
        output.print("a dry run: these commands find the case once it is written")
    output.print(*render_undeclared(ported))
    output.write_json(make_json(ported, written=not dry_run))
    # The case is written in any case, but running it will show more than it declares.
    return ExitCode.UNEXPECTED if ported.undeclared_records else ExitCode.OK
