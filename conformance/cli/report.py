"""`conformance report`: render runs as a site, and in the formats of other tools."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from conformance.app.context import load_context
from conformance.app.golden_state import write_state
from conformance.app.output_files import print_note, write_file
from conformance.app.report import FORMATS, FUZZ, load_runs, write_report_site
from conformance.cli.options import run_option
from conformance.cli.output import json_option, open_console
from conformance.errors import UsageError
from conformance.model.outcome import ExitCode
from conformance.report.terminal import print_report

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rich.console import Console

    from conformance.app.report import ReportedRuns
    from conformance.cli.output import Output

STATE: Final = Path("reports") / "README.md"


def _file_option(name: str, content: str) -> Callable[[Any], Any]:
    kind = click.Path(path_type=Path, allow_dash=True)
    return click.option(
        name, type=kind, metavar="FILE", help=f"Write {content}; - is standard output."
    )


@click.command("report")
@click.argument("folders", nargs=-1, metavar="[DIR]...", type=click.Path(path_type=Path))
@run_option()
@click.option(
    "--out", metavar="DIR", type=click.Path(path_type=Path),
    help="Folder of the site.  [default: report in the newest run's directory]",
)  # fmt: skip
@click.option(
    "--store", metavar="PATH|URL", envvar="CONFORMANCE_STORE",
    help="Database of `conformance history`, whose runs are part of the history.",
)  # fmt: skip
@click.option("--url", metavar="URL", default="", help="Address of the site, for its feed.")
@_file_option("--markdown", "Markdown for the summary of a CI job, or for an issue")
@_file_option("--junit", "JUnit XML")
@_file_option("--csv", "a table of verdicts, cases by cells, for a spreadsheet")
@_file_option("--jobs-csv", "a table of jobs, one per row")
@json_option("everything")
@_file_option("--jsonl", "the record of every job, one JSON line each")
@click.option("--terminal", is_flag=True, help="Print the final output of `conformance run`.")
@click.option(
    "--goldens", is_flag=True,
    help="Make a Markdown page of the goldens instead of a run.  [--out: reports/README.md]",
)  # fmt: skip
@click.option(
    "--fuzz", is_flag=True,
    help="Make a Markdown page of campaigns of `conformance fuzz`.  [--out: reports/fuzz.md]",
)  # fmt: skip
@click.option(
    "--check", is_flag=True, help="With --goldens: only check whether the page is current."
)
def command(
    *,
    folders: tuple[Path, ...],
    run: str | None,
    output: Output,
    out: Path | None,
    store: str | None,
    url: str,
    terminal: bool,
    goldens: bool,
    fuzz: bool,
    check: bool,
    **files: Path | None,
) -> int:
    """Render runs as a site, Markdown, JUnit, CSV or JSON.

    DIR is a folder of runs, or a run directory; the newest run by default. For a folder, the report
    merges the newest run and the newest run of each matrix, and all runs are history. If
    several of these runs have a job, the newest counts. A site is made with --out, or if no other
    format is given.

    conformance report                                  the newest run
    conformance report reports/runs --out site          all runs of a folder, with their history
    conformance report night/shard-* --out site         the shards of one run, merged
    conformance report --store reports/history.db       the newest run, with the history database
    conformance report --markdown "$GITHUB_STEP_SUMMARY" --junit junit.xml
    conformance report --goldens                        the state of JAX in the goldens
    conformance report --fuzz                           the campaigns in reports/campaigns
    """
    context = load_context()
    if goldens and (folders or run):
        raise UsageError("--goldens is about the goldens alone: no DIR or --run with it")
    if fuzz and (goldens or run):
        raise UsageError("--fuzz is about campaigns alone: no --goldens or --run with it")
    if goldens:
        write_state(context, out or context.project.root / STATE, check=check)
        return ExitCode.OK
    if fuzz:
        page = importlib.import_module(FUZZ).write_fuzz_page(context, folders, out)
        output.print(f"campaigns in {page}")
        return ExitCode.OK
    if run is not None or not folders:
        folders = (*folders, context.runs.open(run).path)
    loaded = load_runs(context, folders, store)
    # --json is one of the formats here, so that all formats are rendered from one report.
    if output.json_file is not None:
        files["json"] = output.json_file
    wanted = {name: file for name, file in files.items() if file is not None}
    console = _write_formats(loaded, wanted, terminal=terminal)
    # The site is the default only if no other format is requested.
    if out is not None or not (wanted or terminal):
        first = write_report_site(context, loaded, out, url)
        console.print(f"report in {first.absolute().as_uri()}")
    for problem in loaded.report.problems:
        print_note(problem)
    # The readable runs are reported, and the status shows that some are not.
    return ExitCode.USAGE if loaded.report.problems else ExitCode.OK


def _write_formats(loaded: ReportedRuns, wanted: Mapping[str, Path], *, terminal: bool) -> Console:
    """Write the files of a report, and return the console for other output."""
    # A format on standard output must be alone there.
    console = open_console(stderr="-" in map(str, wanted.values()))
    if terminal:
        print_report(console, loaded.report, directory=loaded.newest)
    for name, file in wanted.items():
        write_file(f"--{name.replace('_', '-')}", file, FORMATS[name](loaded.report))
    return console
