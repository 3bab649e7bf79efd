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
    help="Store of runs, as of `conformance history`: they are history, too.",
)  # fmt: skip
@click.option("--url", metavar="URL", default="", help="Where the site will be, for its feed.")
@_file("--markdown", "Markdown for the summary of a CI job, or for an issue")
@_file("--junit", "JUnit XML")
@_file("--csv", "a table of verdicts, cases by cells, for a spreadsheet")
@_file("--jobs-csv", "a table of jobs, a row each")
@_file("--json", "everything as JSON")
@_file("--jsonl", "the record of every job, a line of JSON each")
@click.option("--terminal", is_flag=True, help="Print what `conformance run` prints at its end.")
@click.option(
    "--goldens", is_flag=True,
    help="Tell what the goldens have, of no run: a Markdown page.  [--out: reports/README.md]",
)  # fmt: skip
@click.option("--check", is_flag=True, help="With --goldens: only see whether it is current.")
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
    """Show what runs came to.

    RUN is the directory of a run, DIR a folder of them; the newest run by default. Of a folder
    the newest run and the newest of each matrix are shown, all are history. Of a job that several
    runs hold, the newest one's counts. Without a format the site is made; with one, if --out
    says where.

    \b
    conformance report                                  the newest run
    conformance report reports/runs --out site          what stands in a folder, with its history
    conformance report night/shard-* --out site         parts of one run, put together
    conformance report --store reports/history.db       the newest run, and all that were kept
    conformance report --markdown "$GITHUB_STEP_SUMMARY" --junit junit.xml
    conformance report --goldens                        the state of JAX, as reviewed
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
