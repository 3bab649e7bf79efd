"""`conformance calibrate`: which jobs do not do the same each time on this host."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

import click
import msgspec

from conformance.app.context import default_jobs, load_context
from conformance.app.notes import print_note
from conformance.app.output_files import check_writable, write_file
from conformance.app.session import Session
from conformance.cli.console import open_console
from conformance.cli.options import cells_options, json_option, with_option
from conformance.cli.run import nothing_to_run
from conformance.cli.words import CASES
from conformance.engine.blobs import BlobStore
from conformance.engine.calibrating import Calibrator
from conformance.engine.calibration import load_calibration, update_calibration
from conformance.engine.plan import make_plan
from conformance.errors import NothingSelectedError
from conformance.files import readable_json
from conformance.model.outcome import ExitCode
from conformance.report.text import visible
from conformance.scratch import temporary_folder
from conformance.wording import plural

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from rich.console import Console

    from conformance.app.context import ProjectContext
    from conformance.engine.calibration import Calibration
    from conformance.engine.plan import Plan
    from conformance.engine.prepare import Preparation

ATTEMPTS: Final = 5
LONGEST: Final = 2_000
"""Characters that are shown of how attempts differ."""


@click.command("calibrate")
@click.argument("select", nargs=-1, type=CASES)
@cells_options
@click.option(
    "--attempts", type=click.IntRange(2, 1000), default=ATTEMPTS, show_default=True,
    help="How often each job is tried.",
)  # fmt: skip
@click.option(
    "--jobs", "-j", type=click.IntRange(1, 256), default=default_jobs,
    show_default="one a core", help="Jobs at the same time.",
)  # fmt: skip
@with_option
@click.option("--show", is_flag=True, help="Show what is known, and try nothing.")
@json_option("what is known of this host")
def command(
    *,
    select: tuple[str, ...],
    matrix: str | None,
    cell: tuple[str, ...],
    attempts: int,
    jobs: int,
    wanted: tuple[str, ...],
    show: bool,
    json_file: Path | None,
) -> int:
    """Learn which jobs do not do the same each time on this host.

    Nothing is compared with a golden: each job is tried several times, in another order each time,
    and its attempts are compared with each other. A run takes it as known that those attempts
    disagree that were seen to here, and asks for five that agree before it reports anything of such
    a job. What is learned is kept in the cache folder, with the facts of the host.

    \b
    conformance calibrate                                 the smoke matrix, five attempts
    conformance calibrate --matrix nightly --attempts 20
    conformance calibrate nnx_vmap_while --cell latest
    conformance calibrate --show
    """  # noqa: D301 - \b is click's own mark
    context = load_context()
    if json_file is not None:
        check_writable("--json", json_file)
    known = load_calibration(context.cache)
    console = open_console(json_file)
    looked_at = 0
    if not show:
        plan, preparation = _plan(context, select, matrix, cell, wanted)
        executor = Session(context=context).executor(preparation.locks, slots=jobs)
        with temporary_folder("calibrate", context.cache) as folder:
            tried = Calibrator(plan.jobs, executor, BlobStore(folder))
            _try(tried, plan, attempts, console)
        looked_at = len(tried.looked_at)
        known = update_calibration(context.cache, tried.looked_at, tried.unstable, print_note)
        console.print(f"{len(tried.unstable)} of {looked_at} jobs are not stable")
    for line in _lines(known):
        console.print(line, markup=False)
    if json_file is not None:
        write_file("--json", json_file, readable_json(msgspec.to_builtins(known)))
    return ExitCode.OK if show or looked_at else ExitCode.INFRA


def _plan(
    context: ProjectContext,
    select: tuple[str, ...],
    matrix: str | None,
    cell: tuple[str, ...],
    wanted: tuple[str, ...],
) -> tuple[Plan, Preparation]:
    cells, left_out = context.cells(matrix, cell)
    preparation = Session(context=context).prepare(cells, wanted)
    exclusions = (*left_out, *preparation.exclusions)
    plan = make_plan(context.cases(select), preparation.cells, exclusions)
    if not plan.jobs:
        raise NothingSelectedError(nothing_to_run(plan.exclusions))
    return plan, preparation


def _try(tried: Calibrator, plan: Plan, attempts: int, console: Console) -> None:
    console.print(
        f"{plural(len(plan.jobs), 'job')} in {plural(len(plan.cells), 'cell')}, "
        f"{plural(attempts, 'attempt')} of each"
    )
    for number in range(1, attempts + 1):
        start = time.monotonic()
        tried.attempt()
        took = f"{time.monotonic() - start:.0f} s"
        unlike = len(tried.unstable)
        console.print(
            f"attempt {number}: {took}, {plural(unlike, 'job')} unlike the first attempt so far"
        )


def _lines(known: Calibration) -> Iterator[str]:
    for one in known.unstable:
        rate = f"{one.differing} of {plural(one.attempts, 'attempt')}"
        yield visible(f"{one.case} on {one.cell}: {rate} on {one.day}: {one.example}", LONGEST)
    if not known.unstable:
        yield "nothing is known that is not stable on this host"
