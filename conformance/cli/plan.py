"""`conformance plan`: what a run would do, and how it is divided among runners."""

from __future__ import annotations

from pathlib import Path

import click
import msgspec

from conformance.app.context import load_context
from conformance.app.plan import parse_labels, split_run
from conformance.app.run_request import RunRequest
from conformance.cli.options import all_option, cells_options, night_option, with_option
from conformance.cli.words import CASES
from conformance.report.shards import make_github_matrix, make_shards_json, render_shards


@click.command("plan")
@click.argument("select", nargs=-1, type=CASES)
@all_option
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
    show_default=True, help="Output format; github is the job matrix of a workflow, on one line.",
)  # fmt: skip
@click.option(
    "--learn", "runs", multiple=True, metavar="DIR",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Update the durations of jobs from a run, or a folder of runs; repeatable.",
)  # fmt: skip
def command(
    *,
    select: tuple[str, ...],
    everything: bool,
    matrix: str | None,
    cell: tuple[str, ...],
    wanted: tuple[str, ...],
    night: str,
    count: int,
    runners: tuple[str, ...],
    form: str,
    runs: tuple[Path, ...],
) -> int:
    """Show the jobs of a run, and split it across runners.

    Shards take about the same time, estimated from matrix/durations.json, which --learn updates.
    Jobs that need an accelerator have shards of their own.

    \b
    conformance plan --matrix nightly                         cells, jobs and durations
    conformance plan --matrix nightly --shards 8              and the shards
    conformance plan --learn reports/runs                     update the durations
    conformance plan --matrix nightly --shards 8 --format github --runner gpu=self-hosted,h100
    """  # noqa: D301 - \b is click's own mark
    request = RunRequest(
        select=select, everything=everything, matrix=matrix, cell=cell, wanted=wanted, night=night
    )
    labels = parse_labels(runners)
    split = split_run(load_context(night), request, count, runs)
    if form == "text":
        for line in render_shards(split.shards, split.exclusions, labels):
            click.echo(line)
    else:
        made = make_github_matrix if form == "github" else make_shards_json
        text = msgspec.json.encode(made(split.shards, split.arguments, labels))
        click.echo(text if form == "github" else msgspec.json.format(text, indent=1))
    return 0
