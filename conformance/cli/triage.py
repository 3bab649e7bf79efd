"""`conformance triage`: find the release and package that introduced each failure of a run."""

from __future__ import annotations

from pathlib import Path

import click

from conformance.app.context import load_context
from conformance.app.output_files import check_writable, write_file
from conformance.app.triage import Triage, TriageOptions
from conformance.cli.console import open_console
from conformance.cli.options import json_option
from conformance.engine.run_directory import RunDirectory, latest_run
from conformance.files import readable_json
from conformance.model.outcome import ExitCode


@click.command("triage")
@click.argument("run", required=False, type=click.Path(path_type=Path, file_okay=False))
@click.option(
    "--limit", type=click.IntRange(min=1), metavar="N",
    help="Investigate the N largest root causes.",
)  # fmt: skip
@click.option(
    "--minutes", type=click.FloatRange(min=0), metavar="M",
    help="Start no investigation after M minutes.",
)  # fmt: skip
@click.option(
    "--blame/--no-blame", default=True, show_default=True,
    help="Search for the package if several changed; makes environments.",
)  # fmt: skip
@click.option("--fresh", is_flag=True, help="Repeat earlier investigations.")
@json_option("the findings")
def command(
    *,
    run: Path | None,
    limit: int | None,
    minutes: float | None,
    blame: bool,
    fresh: bool,
    json_file: Path | None,
) -> int:
    """Find the release and package that introduced each failure of a run.

    RUN is a run directory; the newest by default. For each root cause, triage picks the job with
    the smallest needs and looks for a good point: the release of a modified environment, the last
    nightly, older releases. From there it searches for the first bad point like `conformance
    bisect`, for the package like `conformance blame`, or for the modified files of an environment,
    and writes a reproduction like `conformance repro`. Findings are in RUN/evidence.json and
    RUN/repro; root causes that have findings are not investigated again.

    \b
    conformance triage                        the newest run
    conformance triage reports/runs/NIGHT --limit 5 --minutes 30
    conformance triage --no-blame             no new environments
    conformance triage --fresh --json -       repeat all, for a script

    Host faults and flaky jobs are not investigated. Exit status: 0 all investigations have a
    finding, 1 at least one has none, 2 usage, 4 infrastructure, 70 internal error,
    130 interrupted: the same command continues.
    """  # noqa: D301 - \b is click's own mark
    context = load_context()
    if json_file is not None:
        check_writable("--json", json_file)
    directory = latest_run(context.project.root) if run is None else RunDirectory(run)
    console = open_console(json_file)
    options = TriageOptions(limit=limit, minutes=minutes, blame=blame, fresh=fresh)
    triage = Triage(context=context, directory=directory, options=options, say=console.print)
    try:
        triage.run()
    except KeyboardInterrupt:
        click.echo("conformance: interrupted; the same command goes on where it was", err=True)
        return ExitCode.INTERRUPTED
    if json_file is not None:
        write_file("--json", json_file, readable_json(triage.data))
    return triage.exit_code
