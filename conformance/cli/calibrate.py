"""`conformance calibrate`: find the flaky jobs of this host."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
import msgspec

from conformance.app.calibrate import (
    ATTEMPTS,
    CalibrateOptions,
    calibrate_host,
    calibration_lines,
)
from conformance.app.context import default_jobs, load_context
from conformance.app.output_files import check_writable, write_file
from conformance.cli.console import open_console
from conformance.cli.options import cells_options, json_option, with_option
from conformance.cli.words import CASES
from conformance.engine.calibration import load_calibration
from conformance.files import readable_json
from conformance.model.outcome import ExitCode

if TYPE_CHECKING:
    from pathlib import Path


@click.command("calibrate")
@click.argument("select", nargs=-1, type=CASES)
@cells_options
@click.option(
    "--attempts", type=click.IntRange(2, 1000), default=ATTEMPTS, show_default=True,
    help="Number of attempts of each job.",
)  # fmt: skip
@click.option(
    "--jobs", "-j", type=click.IntRange(1, 256), default=default_jobs,
    show_default="one per core", help="Number of parallel jobs.",
)  # fmt: skip
@with_option
@click.option("--show", is_flag=True, help="Show the flaky jobs of this host, and run nothing.")
@json_option("the flaky jobs of this host")
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
    """Detect flaky jobs on this host.

    Each job runs several times, in another order each time, and its attempts are compared with
    each other, not with a golden. In later runs, disagreeing attempts of such a job are known, and
    an unexpected result needs five equal attempts. The result is kept in the cache folder, with
    the facts of the host.

    \b
    conformance calibrate                                 the smoke matrix, five attempts
    conformance calibrate --matrix nightly --attempts 20
    conformance calibrate nnx_vmap_while --cell latest
    conformance calibrate --show
    """  # noqa: D301 - \b is click's own mark
    context = load_context()
    if json_file is not None:
        check_writable("--json", json_file)
    console = open_console(json_file)
    code = ExitCode.OK
    if show:
        calibration = load_calibration(context.cache)
    else:
        options = CalibrateOptions(
            select=select, matrix=matrix, cell=cell, wanted=wanted, attempts=attempts, jobs=jobs
        )
        calibration, compared = calibrate_host(context, options, console.print)
        code = ExitCode.OK if compared else ExitCode.INFRA
    for line in calibration_lines(calibration):
        console.print(line, markup=False)
    if json_file is not None:
        write_file("--json", json_file, readable_json(msgspec.to_builtins(calibration)))
    return code
