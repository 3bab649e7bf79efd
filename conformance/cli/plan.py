"""`conformance plan`: show the jobs of a run, and split it across runners."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from conformance.app.context import load_context
from conformance.app.plan import parse_labels, split_run
from conformance.app.run_request import RunRequest
from conformance.cli.options import all_option, cells_options, night_option, with_option
from conformance.cli.output import json_option
from conformance.cli.run_options import also_option
from conformance.cli.words import CASES
from conformance.files import readable_json
from conformance.report.shards import make_github_matrix, make_shards_json, render_shards

if TYPE_CHECKING:
    from conformance.cli.output import Output


@click.command("plan")
@click.argument("select", nargs=-1, type=CASES)
@all_option
@also_option
@cells_options
@with_option
@night_option
@click.option(
    "--shards", "count", type=click.IntRange(1, 256), default=1, show_default=True,
    help="Number of shards.",
)  # fmt: skip
@click.option(
    "--runner", "runners", multiple=True, metavar="KIND=LABEL[,LABEL]",
    help="Labels of the runners with an accelerator, gpu or tpu, or of all others, any; "
    "repeatable.  [default: any=ubuntu-latest, gpu=self-hosted,gpu, tpu=self-hosted,tpu]",
)  # fmt: skip
@click.option(
    "--format", "form", type=click.Choice(["text", "json", "github"]), default="text",
    show_default=True, metavar="text|github",
    help="Output format; github is the job matrix of a workflow, on one line.",
)  # fmt: skip
@click.option(
    "--learn", "folders", multiple=True, metavar="DIR",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Update the durations of jobs from a run, or a folder of runs; repeatable.",
)  # fmt: skip
@json_option("the shards")
def command(
    *,
    count: int,
    runners: tuple[str, ...],
    form: str,
    folders: tuple[Path, ...],
    output: Output,
    **request: Any,
) -> int:
    """Show the jobs of a run, and split it across runners.

    Shards take about the same time, estimated from matrix/durations.json, which --learn updates.
    Jobs that need an accelerator have shards of their own.

    conformance plan --matrix nightly                         cells, jobs and durations
    conformance plan --matrix nightly --shards 8              and the shards
    conformance plan --learn reports/runs                     update the durations
    conformance plan --matrix nightly --shards 8 --format github --runner gpu=self-hosted,h100
    """
    # First: a mistyped label is an error before the network is used.
    labels = parse_labels(runners)
    run_request = RunRequest(**request)
    split = split_run(load_context(run_request.night), run_request, count, folders)
    data = make_shards_json(split.shards, split.arguments, labels)
    if form == "github":
        # On one line, because GITHUB_OUTPUT takes NAME=VALUE in a line.
        matrix = make_github_matrix(split.shards, split.arguments, labels)
        output.show(data, [msgspec.json.encode(matrix).decode()])
    # The earlier spelling of `--json -`.
    elif form == "json":
        click.echo(readable_json(data))
    else:
        output.show(data, render_shards(split.shards, split.exclusions, labels))
    return 0
