"""`conformance triage`: find the release and package that introduced each failure of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from conformance.app.context import load_context
from conformance.app.search.commit_ends import find_jax_location
from conformance.app.triage import Triage, TriageOptions
from conformance.cli.options import HiddenArgument, run_option, timeout_option
from conformance.cli.output import json_option
from conformance.cli.progress import explain_interrupt
from conformance.cli.target_options import origin_options
from conformance.search.axes import RESTART

if TYPE_CHECKING:
    from conformance.cli.output import Output


@click.command("triage")
@click.argument("directory", cls=HiddenArgument, required=False)
@run_option()
@click.option(
    "--limit", type=click.IntRange(min=1), metavar="N",
    help="Investigate the N largest root causes.",
)  # fmt: skip
@timeout_option("Start no investigation after this time.", least=0)
# The earlier spelling of --timeout.
@click.option("--minutes", type=click.FloatRange(min=0), hidden=True)
@click.option(
    "--blame/--no-blame", default=True, show_default=True,
    help="Search for the package if several changed; makes environments.",
)  # fmt: skip
@origin_options
@click.option("--fresh", is_flag=True, help="Repeat earlier investigations.")
@json_option("the findings")
def command(
    *,
    directory: str | None,
    run: str | None,
    limit: int | None,
    timeout: float | None,
    minutes: float | None,
    blame: bool,
    layers: bool,
    commits: bool,
    jax_repo: str,
    fresh: bool,
    output: Output,
) -> int:
    """Find the release and package that introduced each failure of a run.

    For each root cause of a run, triage picks the job with the smallest needs and looks for a good
    point: the release of a modified environment, the last nightly, older releases. From there it
    searches for the first bad point like `conformance bisect`, for the package like `conformance
    blame`, or for the modified files of an environment, and writes a reproduction like `conformance
    repro`. Findings are in `evidence.json` and `repro` of the run directory; root causes that have
    findings are not investigated again.

    conformance triage                        the newest run
    conformance triage --run reports/runs/NIGHT --limit 5 --timeout 1800
    conformance triage --no-blame             no new environments
    conformance triage --layers --commits     the layer and the commit of jax, too
    conformance triage --fresh --json -       repeat all, for a script

    Host faults and flaky jobs are not investigated. Exit status: 0 all investigations have a
    finding, 1 at least one has none, 2 usage, 4 infrastructure, 70 internal error,
    130 interrupted: the same command continues.
    """
    context = load_context()
    if minutes is not None:
        timeout = 60 * minutes
    location = find_jax_location(context, jax_repo) if commits else ""
    triage = Triage(
        context=context, directory=context.runs.open(run or directory), say=output.print,
        options=TriageOptions(
            limit=limit, timeout=timeout, blame=blame, fresh=fresh, jax_location=location,
            layers=layers,
        ),
    )  # fmt: skip
    with explain_interrupt(RESTART):
        triage.run()
    output.write_json(triage.data)
    return triage.exit_code
