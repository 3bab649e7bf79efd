"""`conformance triage`: find the release and package that introduced each failure of a run."""

from __future__ import annotations

from pathlib import Path

import click

from conformance.app.context import load_context
from conformance.app.output_files import check_writable, write_file
from conformance.app.triage import Triage, TriageOptions
from conformance.cli.console import open_console
from conformance.cli.options import json_option
from conformance.engine.rundir import RunDirectory, latest_run
from conformance.files import readable_json
from conformance.model.outcome import ExitCode


@click.command("triage")
@click.argument("run", required=False, type=click.Path(path_type=Path, file_okay=False))
@click.option(
    "--limit", type=click.IntRange(min=1), metavar="N",
    help="Look into the first N root causes, the largest first.",
)  # fmt: skip
@click.option(
    "--minutes", type=click.FloatRange(min=0), metavar="M",
    help="Begin with none after M minutes.",
)  # fmt: skip
@click.option(
    "--blame/--no-blame", default=True, show_default=True,
    help="Search for the package, where a release differs in several; makes environments.",
)  # fmt: skip
@click.option("--fresh", is_flag=True, help="Look also into what was looked into before.")
@json_option("what was found out")
def command(
    *,
    run: Path | None,
    limit: int | None,
    minutes: float | None,
    blame: bool,
    fresh: bool,
    json_file: Path | None,
) -> int:
    """Find out since when, and by what, a run is not as expected, for each of its root causes.

    RUN is the directory of a run, the newest one by default. Of each cause the job that needs
    least is tried where it was right: the release that a changed environment says it is, the last
    night, older releases. From there on the first bad release, night or environment is searched,
    as by `conformance bisect`, then the package, as by `conformance blame`, or the changed files of
    an environment. A file that shows it is written as by `conformance repro`. All of it goes to
    RUN/evidence.json and RUN/repro, cause by cause: what is there already is not searched again.

    \b
    conformance triage                        the newest run
    conformance triage reports/runs/NIGHT --limit 5 --minutes 30
    conformance triage --no-blame             no new environments
    conformance triage --fresh --json -       anew, for a script

    Faults of the host and what is flaky are not looked into. Exit status: 0 all that was looked
    into is found out, 1 something could not be, 2 usage, 4 the host stood in the way,
    70 internal error, 130 interrupted: the same command goes on.
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
