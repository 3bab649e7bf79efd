"""`conformance run`: the main job."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from conformance.app.context import default_jobs
from conformance.app.output_files import check_writable
from conformance.app.run import RunOptions, start_run
from conformance.app.run_request import RunRequest
from conformance.cli.console import open_console
from conformance.cli.options import (
    all_option,
    cells_options,
    json_option,
    night_option,
    site_option,
    with_option,
)
from conformance.cli.progress import live_progress
from conformance.cli.run_output import hand_out
from conformance.cli.since_options import fail_on_option, since_options
from conformance.cli.words import CASES
from conformance.engine.exit_policy import FailOn
from conformance.model.outcome import ExitCode
from conformance.report.terminal import print_report

if TYPE_CHECKING:
    from conformance.app.since import SinceOptions


@click.command("run")
@click.argument("select", nargs=-1, type=CASES)
@all_option
@cells_options
@click.option(
    "--jobs", "-j", type=click.IntRange(1, 256), default=default_jobs,
    show_default="one per core", help="Number of parallel jobs.",
)  # fmt: skip
@click.option("--run-dir", type=click.Path(path_type=Path, file_okay=False), help="Run directory.")
@click.option("--resume", is_flag=True, help="Continue --run-dir, or the newest run.")
@click.option("--fresh", is_flag=True, help="Ignore cached results.")
@click.option("--shard", default="1/1", metavar="I/N", help="Run shard I of N.")
@click.option(
    "--require-platform", is_flag=True,
    help="Fail if an accelerator (gpu, tpu) is missing instead of skipping its jobs.",
)  # fmt: skip
@click.option("--spawn", is_flag=True, help="Start a fresh interpreter per job instead of a fork.")
@with_option
@night_option
@since_options
@fail_on_option(str(FailOn.UNEXPECTED))
@json_option("the whole result")
@site_option
@click.option(
    "--verbose", "-v", is_flag=True,
    help="Show every case instead of families, and the traceback of every unexpected job.",
)  # fmt: skip
def command(
    *,
    select: tuple[str, ...],
    everything: bool,
    matrix: str | None,
    cell: tuple[str, ...],
    jobs: int,
    run_dir: Path | None,
    resume: bool,
    fresh: bool,
    shard: str,
    require_platform: bool,
    wanted: tuple[str, ...],
    night: str,
    compared: SinceOptions,
    fail_on: str,
    spawn: bool,
    json_file: Path | None,
    site: bool | None,
    verbose: bool,
) -> int:
    """Run cases in cells and judge the results.

    SELECT is a family, a case id, a glob, or the path of a file or folder of cases. The default is
    the smoke run: a sample of every family on four releases. With --all, --matrix or --cell the
    default is all cases.

    \b
    conformance run                                     the smoke run
    conformance run --all                               every case on these releases
    conformance run shard_map_while aot_placement       two families
    conformance run 'linearize_transpose/*grad*' --cell 0.5.3 --cell 0.6.2
    conformance run --matrix releases --json result.json
    conformance run --cell path:/opt/jax-dev/bin/python my/cases/topic.py
    conformance run --cell 'latest@tpu:v5e:2x2'         compiled for a TPU, no hardware needed
    conformance run --cell path:/usr/bin/python3@gpu4   the jax of a container, on its GPUs
    conformance run --matrix nightly --cell path:/opt/jax-dev/bin/python
                                                        ... a matrix and an environment
    conformance run --matrix nightly --fail-on new      ignore failures of the last nightly
    conformance run --resume                            after a crash or Ctrl-C
    """  # noqa: D301 - \b is click's own mark
    request = RunRequest(
        select=select, everything=everything, matrix=matrix, cell=cell, shard=shard,
        require_platform=require_platform, wanted=wanted, fail_on=fail_on, night=night,
    )  # fmt: skip
    options = RunOptions(run_dir=run_dir, resume=resume, jobs=jobs, fresh=fresh, spawn=spawn)
    if json_file is not None:
        check_writable("--json", json_file)
    console = open_console(json_file)
    with start_run(request, options, console.print) as started:
        run = started.run
        try:
            with live_progress(console, len(run.plan.jobs), len(run.plan.cells)) as run.progress:
                records = started.execute()
        except KeyboardInterrupt:
            click.echo(f"conformance: interrupted; {started.remedy}", err=True)
            return ExitCode.INTERRUPTED
        report, code = started.conclude(records, compared)
        print_report(console, report, directory=run.directory.path, verbose=verbose)
        hand_out(report, run.directory, console, json_file=json_file, site=site)
    return code
