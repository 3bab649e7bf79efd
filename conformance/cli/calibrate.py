"""`conformance calibrate`: find the flaky jobs of this host."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from conformance.app.calibrate import (
    ATTEMPTS,
    CalibrateOptions,
    calibrate_host,
    render_calibration,
)
from conformance.app.context import load_context
from conformance.cli.options import cells_options, jobs_option, with_option
from conformance.cli.output import json_option
from conformance.cli.words import CASES
from conformance.engine.calibration import load_calibration
from conformance.model.outcome import ExitCode

if TYPE_CHECKING:
    from conformance.cli.output import Output


@click.command("calibrate")
@click.argument("select", nargs=-1, type=CASES)
@cells_options
@click.option(
    "--attempts", type=click.IntRange(2, 1000), default=ATTEMPTS, show_default=True,
    help="Number of attempts of each job.",
)  # fmt: skip
@jobs_option()
@with_option
@click.option("--show", is_flag=True, help="Show the flaky jobs of this host, and run nothing.")
@json_option("the flaky jobs of this host")
def command(*, show: bool, output: Output, **options: Any) -> int:
    """Detect flaky jobs on this host.

    Each job runs several times, in another order each time, and its attempts are compared with
    each other, not with a golden. In later runs, disagreeing attempts of such a job are known, and
    an unexpected result needs five equal attempts. The result is kept in the cache folder, with
    the facts of the host.

    conformance calibrate                                 the smoke matrix, five attempts
    conformance calibrate --matrix nightly --attempts 20
    conformance calibrate nnx_vmap_while --cell latest
    conformance calibrate --show
    """
    context, code = load_context(), ExitCode.OK
    if show:
        calibration = load_calibration(context.cache)
    else:
        calibration, compared = calibrate_host(context, CalibrateOptions(**options), output.print)
        # Nothing was compared: no job ran twice, usually because its environment is missing.
        code = ExitCode.OK if compared else ExitCode.INFRA
    output.print(*render_calibration(calibration))
    # The whole calibration, also of jobs that this command did not run: later runs use all of it.
    output.write_json(calibration)
    return code
