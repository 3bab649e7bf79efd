"""`conformance plan`: what a run would do, and how it is divided among runners."""

from __future__ import annotations

import shlex
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click
import msgspec

from conformance.app.context import load_context
from conformance.app.nightlies import newest_night
from conformance.app.notes import print_note
from conformance.app.session import Session
from conformance.app.shards import durations_file, durations_of, parts_of
from conformance.cli.options import all_option, cells_options, night_option, with_option
from conformance.cli.run import nothing_to_run
from conformance.cli.words import CASES
from conformance.engine.durations import learned
from conformance.engine.loading import load, runs_in
from conformance.engine.plan import make_plan, possible_jobs
from conformance.errors import NothingSelectedError, UsageError
from conformance.files import write_atomically
from conformance.locking import locked
from conformance.report.shards import github_matrix, shard_lines, shards_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from conformance.app.context import ProjectContext
    from conformance.engine.durations import Durations
    from conformance.engine.rundir import RunDirectory

ANY: Final = "any"
RUNNERS: Final[Mapping[str, str | list[str]]] = {
    "": "ubuntu-latest",
    "gpu": ["self-hosted", "gpu"],
    "tpu": ["self-hosted", "tpu"],
}
"""Labels of runners, by the accelerator that they must have."""


@click.command("plan")
@click.argument("select", nargs=-1, type=CASES)
@all_option
@cells_options
@with_option
@night_option
@click.option(
    "--shards", "count", type=click.IntRange(1, 256), default=1, show_default=True,
    help="Parts that it is divided into.",
)  # fmt: skip
@click.option(
    "--runner", "runners", multiple=True, metavar="KIND=LABEL[,LABEL]",
    help="Labels of the runners with an accelerator, gpu or tpu, or of the others, any; "
    "repeatable.  [default: any=ubuntu-latest, gpu=self-hosted,gpu, tpu=self-hosted,tpu]",
)  # fmt: skip
@click.option(
    "--format", "form", type=click.Choice(["text", "json", "github"]), default="text",
    show_default=True, help="github is a job matrix, in one line.",
)  # fmt: skip
@click.option(
    "--learn", "runs", multiple=True, metavar="DIR",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Learn how long jobs take from a run, or a folder of them, for --shard; repeatable.",
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
    """Say what a run would do, and how it is divided among runners.

    The parts take about as long as one another, by what is known of the durations of jobs: that is
    in matrix/durations.json, which --learn writes. What needs an accelerator has parts of its own.

    \b
    conformance plan --matrix nightly                         cells, jobs, how long they take
    conformance plan --matrix nightly --shards 8              and who does what
    conformance plan --learn reports/runs                     keep how long jobs took
    conformance plan --matrix nightly --shards 8 --format github --runner gpu=self-hosted,h100
    """  # noqa: D301 - \b is click's own mark
    context = load_context(night)
    labels = _labels(runners)
    durations = _learned(context, runs) if runs else durations_of(context)
    cells, left_out = context.cells(matrix, cell)
    preparation = Session(context=context).prepare(cells, wanted)
    cases, _ = context.cases_of_run(select, given=(matrix, cell), everything=everything)
    plan = make_plan(cases, preparation.cells, (*left_out, *preparation.exclusions))
    for planned in preparation.cells:
        if planned.failure:  # another runner may have what this host lacks
            print_note(f"{planned.cell.id}: {planned.failure}")
    if not plan.jobs:
        raise NothingSelectedError(nothing_to_run(plan.exclusions))
    parts = parts_of(plan, possible_jobs(cases, cells), count, durations)
    asked = _arguments(
        ["--all"] if everything else select, matrix, cell, wanted, newest_night(cells)
    )
    if form == "text":
        for line in shard_lines(parts, plan.exclusions, labels):
            click.echo(line)
    else:
        made = github_matrix if form == "github" else shards_json
        text = msgspec.json.encode(made(parts, asked, labels))
        click.echo(text if form == "github" else msgspec.json.format(text, indent=1))
    return 0


def _learned(context: ProjectContext, runs: Iterable[Path]) -> Durations:
    """Add how long jobs took to what is known of them, and return that."""
    records = tuple(chain.from_iterable(load(one).records for one in _found(runs)))
    file = durations_file(context)
    with locked({file.parent}, print_note):
        durations = learned(records, durations_of(context))
        write_atomically(file, durations.encoded())
    return durations


def _labels(given: Iterable[str]) -> Mapping[str, str | list[str]]:
    """Return the labels of runners by accelerator, empty for none."""
    found: dict[str, str | list[str]] = dict(RUNNERS)
    for text in given:
        kind, _, label = text.partition("=")
        kind = "" if kind == ANY else kind or ANY
        names = [name.strip() for name in label.split(",")]
        if kind not in found or not all(names):
            raise UsageError(
                f"--runner {text}: expected KIND=LABEL, of any, gpu or tpu, "
                "e.g. gpu=self-hosted,h100"
            )
        found[kind] = names if len(names) > 1 else names[0]
    return found


def _found(folders: Iterable[Path]) -> Iterable[RunDirectory]:
    return chain.from_iterable(map(runs_in, folders))


def _arguments(
    select: Iterable[str],
    matrix: str | None,
    cells: Iterable[str],
    wanted: Iterable[str],
    night: str,
) -> str:
    """Return arguments of `conformance run` for what is asked, as a shell has them."""
    words = [*select, *(["--matrix", matrix] if matrix else [])]
    for option, values in (("--cell", cells), ("--with", wanted)):
        words += chain.from_iterable((option, value) for value in values)
    words += ["--night", night] if night else []
    return shlex.join(words)
