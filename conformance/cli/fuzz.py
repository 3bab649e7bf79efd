"""`conformance fuzz`: search for behaviour changes with generated programs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from conformance.app.context import load_context
from conformance.app.fuzz.run import FuzzOptions, make_json, plan_campaign, run_campaign
from conformance.cli.executor_options import executor_options
from conformance.cli.output import json_option
from conformance.cli.progress import explain_interrupt
from conformance.cli.words import CELLS
from conformance.model.outcome import ExitCode

if TYPE_CHECKING:
    from conformance.cli.output import Output


@click.command("fuzz")
@click.option(
    "--from", "older", metavar="SELECTOR", type=CELLS, default=None,
    help="Oldest release.  [default: latest-1]",
)  # fmt: skip
@click.option(
    "--to", "newer", metavar="SELECTOR", type=CELLS, default=None,
    help="Newest release.  [default: latest]",
)  # fmt: skip
@click.option(
    "--cell", "cells", multiple=True, metavar="SELECTOR", type=CELLS,
    help="Cells to compare in place of --from and --to, the oldest first; repeatable.",
)  # fmt: skip
@click.option(
    "--minutes", type=click.FloatRange(min=0), default=10, show_default=True,
    help="Time limit; a round that has begun is finished. With 0 nothing runs.",
)  # fmt: skip
@click.option("--seed", type=click.IntRange(min=0), default=None,
              help="Seed of the programs.  [default: 0; of a nightly, its date]")  # fmt: skip
@click.option(
    "--ops", "operations", multiple=True, metavar="GLOB",
    help="Operations of the programs, e.g. 'jnp.cum*'; repeatable.",
)  # fmt: skip
@executor_options("Number of parallel batches.")
@click.option(
    "--run", "run_dir", type=click.Path(path_type=Path, file_okay=False), default=None,
    metavar="DIR", help="Folder of the campaign.  [default: reports/campaigns/FROM-TO-SEED]",
)  # fmt: skip
@click.option("--resume", is_flag=True, help="Continue the campaign of the folder.")
@click.option(
    "--cases", type=click.Path(path_type=Path, file_okay=False), metavar="DIR", default=None,
    help="Folder that gets the cases of new findings, for conformance run --also DIR.",
)  # fmt: skip
@json_option("the campaign and its findings")
def command(*, run_dir: Path | None, output: Output, **options: Any) -> int:
    """Search for unreported behaviour changes with generated programs.

    Each program runs on both ends of a range of releases, in several modes on the newer one, and in
    NumPy where it can. A difference beyond its error bound is shrunk, dated over all releases of
    the range, and compared with the history.

    conformance fuzz                                    the two newest releases, ten minutes
    conformance fuzz --from 0.8.0 --to latest --minutes 60
    conformance fuzz --ops 'jnp.linalg.*' --ops lax.scan
    conformance fuzz --cell nightly-1 --cell nightly    what changed since yesterday
    conformance fuzz --resume                           after a crash or Ctrl-C

    Exit status: 0 no new finding, 1 new findings, 2 usage, 4 infrastructure, 70 internal error,
    130 interrupted.
    """
    chosen = FuzzOptions(folder=run_dir, **options)
    if not chosen.minutes:
        output.print("no campaign: --minutes 0")
        return ExitCode.OK
    context = load_context()
    plan = plan_campaign(context, chosen)
    with explain_interrupt(f"conformance fuzz --resume --run {plan.folder}"):
        log = run_campaign(context, plan, output.print)
    output.print(f"findings in {plan.folder / 'findings.md'}")
    output.write_json(make_json(log))
    new = any(not finding.known for finding in log.findings.values())
    return ExitCode.UNEXPECTED if new else ExitCode.OK
