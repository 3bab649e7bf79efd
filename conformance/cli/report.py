"""`conformance report`: render runs as a site and in the formats of other tools."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from conformance.app.context import load_context
from conformance.app.golden_state import write_state
from conformance.app.output_files import write_file
from conformance.app.report import FORMATS, load_runs, write_report_site
from conformance.cli.console import open_console
from conformance.errors import UsageError
from conformance.model.outcome import ExitCode
from conformance.report.terminal import print_report

if TYPE_CHECKING:
    from collections.abc import Callable

STATE: Final = Path("reports") / "README.md"


def _file(name: str, what: str) -> Callable[[Any], Any]:
    kind = click.Path(path_type=Path, allow_dash=True)
    return click.option(
        name, type=kind, metavar="FILE", help=f"Write {what}; - is standard output."
    )


@click.command("report")
@click.argument("runs", nargs=-1, metavar="[RUN|DIR]...", type=click.Path(path_type=Path))
@click.option(
    "--out", metavar="DIR", type=click.Path(path_type=Path),
    help="Folder of the site.  [default: report in the newest run's directory]",
)  # fmt: skip
@click.option(
    "--store", metavar="PATH|URL", envvar="CONFORMANCE_STORE",
    help="Database of `conformance history`, whose runs are part of the history.",
)  # fmt: skip
@click.option("--url", metavar="URL", default="", help="Address of the site, for its feed.")
@_file("--markdown", "Markdown for the summary of a CI job, or for an issue")
@_file("--junit", "JUnit XML")
@_file("--csv", "a table of verdicts, cases by cells, for a spreadsheet")
@_file("--jobs-csv", "a table of jobs, one per row")
@_file("--json", "everything as JSON")
@_file("--jsonl", "the record of every job, one JSON line each")
@click.option("--terminal", is_flag=True, help="Print the final output of `conformance run`.")
@click.option(
    "--goldens", is_flag=True,
    help="Make a Markdown page of the goldens instead of a run.  [--out: reports/README.md]",
)  # fmt: skip
@click.option(
    "--check", is_flag=True, help="With --goldens: only check whether the page is current."
)
def command(
    *,
    runs: tuple[Path, ...],
    out: Path | None,
    store: str | None,
    url: str,
    terminal: bool,
    goldens: bool,
    check: bool,
    **files: Path | None,
) -> int:
    """Render runs as a site, Markdown, JUnit, CSV or JSON.

    RUN is a run directory, DIR a folder of runs; the default is the newest run. For a folder, the
    report merges the newest run and the newest run of each matrix, and all runs are history. If
    several of these runs have a job, the newest counts. A site is made with --out, or if no other
    format is given.

    \b
    conformance report                                  the newest run
    conformance report reports/runs --out site          all runs of a folder, with their history
    conformance report night/shard-* --out site         the shards of one run, merged
    conformance report --store reports/history.db       the newest run, with the history database
    conformance report --markdown "$GITHUB_STEP_SUMMARY" --junit junit.xml
    conformance report --goldens                        the state of JAX in the goldens
    """  # noqa: D301 - \b is click's own mark
    context = load_context()
    if goldens:
        if runs:
            raise UsageError("--goldens tells of no run: name none with it")
        write_state(context, out or context.project.root / STATE, check=check)
        return ExitCode.OK
    loaded = load_runs(context, runs, store, partial(click.echo, err=True))
    asked = {name: file for name, file in files.items() if file is not None}
    console = open_console(stderr="-" in map(str, asked.values()))
    if terminal:
        print_report(console, loaded.report, directory=loaded.newest)
    for name, file in asked.items():
        write_file(f"--{name.replace('_', '-')}", file, FORMATS[name](loaded.report))
    if out is not None or not (asked or terminal):
        first = write_report_site(context, loaded, out, url)
        console.print(f"report in {first.absolute().as_uri()}", soft_wrap=True)
    for problem in loaded.report.problems:
        click.echo(f"conformance: {problem}", err=True)
    return ExitCode.USAGE if loaded.report.problems else ExitCode.OK
