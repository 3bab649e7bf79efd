"""`conformance run`: run cases in cells, and judge the results."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from conformance.app.run import RunOptions, start_run
from conformance.app.run_request import RunRequest
from conformance.cli.executor_options import executor_options
from conformance.cli.options import (
    all_option,
    cells_options,
    fresh_option,
    night_option,
    run_folder_option,
    with_option,
)
from conformance.cli.output import json_option
from conformance.cli.progress import explain_interrupt, live_progress
from conformance.cli.run_options import (
    also_option,
    cache_options,
    fail_on_option,
    since_options,
    site_option,
    verbose_option,
    write_outputs,
)
from conformance.cli.words import CASES
from conformance.engine.exit_policy import FailOn
from conformance.report.terminal import print_report

if TYPE_CHECKING:
    from pathlib import Path

    from conformance.app.cluster_choice import ClusterChoice
    from conformance.app.since import SinceOptions
    from conformance.cli.output import Output


@click.command("run")
@click.argument("select", nargs=-1, type=CASES)
@all_option
@also_option
@cells_options
@executor_options()
@run_folder_option
@click.option("--resume", is_flag=True, help="Continue the run of --run, or the newest.")
@fresh_option
@cache_options
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
@verbose_option
def command(
    *,
    jobs: int,
    cluster: ClusterChoice | None,
    run_dir: Path | None,
    resume: bool,
    fresh: bool,
    spawn: bool,
    compared: SinceOptions,
    output: Output,
    site: bool | None,
    verbose: bool,
    **request: Any,
) -> int:
    """Run cases in cells and judge the results.

    SELECT is a family, a case id, a glob, or the path of a file or folder of cases. The default is
    the smoke run: a sample of every family on four releases. With --all, --matrix or --cell the
    default is all cases.

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
    conformance run --matrix nightly --fail-on new      ignore failures of the previous run
    conformance run --resume                            after a crash or Ctrl-C
    """
    options = RunOptions(
        run_dir=run_dir, resume=resume, jobs=jobs, fresh=fresh, spawn=spawn, cluster=cluster
    )
    console = output.console
    with start_run(RunRequest(**request), options, output.print) as started:
        run = started.run
        # The bar is closed before the report is printed to the same console.
        shown = live_progress(console, len(run.plan.jobs), len(run.plan.cells))
        # Only the jobs: an interrupt of the report leaves nothing to resume.
        with explain_interrupt(started.remedy), shown as progress:
            run.progress, run.rerun = progress.take, progress.rerun
            records = started.execute()
        # Still under the lock of the directory: a second --resume must not append in between.
        report, code = started.conclude(records, compared)
        print_report(console, report, directory=run.directory.path, verbose=verbose)
        write_outputs(report, run.directory, output, site=site)
    return code
