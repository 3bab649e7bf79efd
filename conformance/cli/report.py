"""`conformance report`: what runs came to, as a site and in the formats of others."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from conformance.app.context import default_jobs, load_context
from conformance.app.golden_state import write_state
from conformance.app.output_files import write_file
from conformance.app.since import STORE_NIGHTS
from conformance.app.site_folder import write_site
from conformance.cli.console import open_console
from conformance.cli.suite_history import committed
from conformance.engine.diff_cache import DiffCache
from conformance.engine.digest_store import DigestStore
from conformance.engine.evidence_file import read_evidence, read_reproduction
from conformance.engine.loading import load_all, runs_in
from conformance.engine.nights import merged_since
from conformance.engine.rundir import UPGRADE, CorruptRunError, RunDirectory, latest_run
from conformance.engine.since_file import read_since
from conformance.errors import ConformanceError, NothingSelectedError, UsageError
from conformance.files import readable_json
from conformance.model.outcome import ExitCode
from conformance.report.choice import shown
from conformance.report.data import json_lines, report_json
from conformance.report.history import History, history
from conformance.report.junit import junit
from conformance.report.looked_into import LookedInto
from conformance.report.markdown import markdown
from conformance.report.report import Report
from conformance.report.site.site import first_page, site
from conformance.report.tables import jobs_csv, matrix_csv
from conformance.report.terminal import print_report
from conformance.report.upgrade_file import upgrade_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    from conformance.app.context import ProjectContext
    from conformance.engine.digests import Digest
    from conformance.engine.loading import LoadedRun
    from conformance.model.since import Since
    from conformance.report.conformance_history import Conformance
    from conformance.report.upgrade_file import UpgradeFile

STATE: Final = Path("reports") / "README.md"
SITE: Final = "report"
"""Folder of a run's site, in its directory."""
FORMATS: Final[dict[str, Callable[[Report], bytes]]] = {
    "markdown": lambda report: markdown(report).encode(),
    "junit": junit,
    "csv": lambda report: matrix_csv(report).encode(),
    "jobs_csv": lambda report: jobs_csv(report).encode(),
    "json": lambda report: readable_json(report_json(report)),
    "jsonl": lambda report: b"\n".join(json_lines(report)),
}
"""What a report is written as beside the site, by the option that asks for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """What a report tells of.

    Attributes:
        report: The runs that are shown.
        history: These and the others.
        newest: Directory of the newest run.
    """

    report: Report
    history: History
    newest: Path


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
    chosen = _chosen(context, runs, store)
    asked = {name: file for name, file in files.items() if file is not None}
    console = open_console(stderr="-" in map(str, asked.values()))
    if terminal:
        print_report(console, chosen.report, directory=chosen.newest)
    for name, file in asked.items():
        write_file(f"--{name.replace('_', '-')}", file, FORMATS[name](chosen.report))
    if out is not None or not (asked or terminal):
        folder = out or chosen.newest / SITE
        diffs = DiffCache(context.cache, default_jobs())
        write_site(site(chosen.report, chosen.history, diffs, address=url), folder)
        first = folder / first_page(chosen.report)
        console.print(f"report in {first.absolute().as_uri()}", soft_wrap=True)
    for problem in chosen.report.problems:
        click.echo(f"conformance: {problem}", err=True)
    return ExitCode.USAGE if chosen.report.problems else ExitCode.OK


def _stored(store: str | None) -> tuple[list[Digest], list[str]]:
    """Return the digests of the runs of a store, if one is named, and what is wrong with it."""
    if not store:
        return [], []
    module = importlib.import_module(STORE_NIGHTS)  # with its database
    try:
        return module.digests_in(store, partial(click.echo, err=True)), []
    except ConformanceError as error:
        return [], [f"{error}; its runs are no history here"]


def _chosen(context: ProjectContext, given: Sequence[Path], store: str | None) -> Chosen:
    """Return what is told of the runs that were named, and of those of a store."""
    found = list(_directories(context, given))
    every = [run for runs in found for run in runs]
    digests, problems = DigestStore(context.cache / "digests", default_jobs()).get_all(every)
    wanted: list[RunDirectory] = []
    for runs in found:
        known = {id(digests[run]): run for run in runs if run in digests}
        wanted += [known[id(one)] for one in shown(digests[run] for run in runs if run in digests)]
    loaded, worse = load_all(list(dict.fromkeys(wanted)))
    if not loaded:
        raise NothingSelectedError("\n".join([*problems, *worse]))
    ordered = sorted(loaded, key=lambda run: (run.info.started, run.id))
    newest = next(run.path for run in wanted if run.id == ordered[-1].id)
    upgrades, worst = _upgrades(wanted, {run.id for run in loaded})
    evidence, unread = _evidence(wanted)
    since, worst_of_all = _since(RunDirectory(newest))
    if since is not None:
        since = merged_since(since, {cause: one.found for cause, one in evidence.items()})
    stored, unstored = _stored(store)
    conformance, unkept = _conformance(context, ordered)
    problems += [*worse, *worst, *worst_of_all, *unread, *unstored, *unkept]
    return Chosen(
        report=Report(
            tuple(ordered), tuple(dict.fromkeys(problems)), upgrades, since, evidence, conformance
        ),
        history=history(_each_once(digests.values(), stored)),
        newest=newest,
    )


def _conformance(
    context: ProjectContext, runs: Iterable[LoadedRun]
) -> tuple[dict[str, Conformance], list[str]]:
    """Return what is kept of the suites that runs are of, and what cannot be read of it."""
    found, problems = {}, []
    for suite in {run.info.suite.name: run.info.suite for run in runs if run.info.suite}.values():
        try:
            kept = committed(context, suite.title)
        except ConformanceError as error:
            problems.append(str(error))
            continue
        if kept is not None and kept.suite == suite.name:
            found[suite.name] = kept
    return found, problems


def _each_once(own: Iterable[Digest], stored: Iterable[Digest]) -> Iterator[Digest]:
    """Yield the digests of runs, and those of a store that are of others."""
    known = set()
    for digest in own:
        known.add((digest.run, digest.started, digest.finished))
        yield digest
    for digest in stored:
        if (digest.run, digest.started, digest.finished) not in known:
            yield digest


def _since(newest: RunDirectory) -> tuple[Since | None, list[str]]:
    """Return what changed in the newest run since the one before, and what is wrong with that."""
    try:
        return read_since(newest), []
    except CorruptRunError as error:
        return None, [str(error)]


def _upgrades(
    runs: Iterable[RunDirectory], loaded: Collection[str]
) -> tuple[dict[str, UpgradeFile], list[str]]:
    """Return what those of the runs came to that were upgrades, and what cannot be read of it."""
    found, problems = {}, []
    for run in runs:
        try:
            content = run.read_upgrade() if run.id in loaded else None
            if content is not None:
                found[run.id] = upgrade_of(content, str(run.path / UPGRADE))
        except ConformanceError as error:
            problems.append(str(error))
    return found, problems


def _evidence(runs: Iterable[RunDirectory]) -> tuple[dict[str, LookedInto], list[str]]:
    """Return what was found out about root causes, and what cannot be read of it."""
    found, problems = {}, []
    for run in runs:
        try:
            evidence = read_evidence(run)
        except ConformanceError as error:
            problems.append(str(error))
            continue
        for cause, one in evidence.items():
            found[cause] = LookedInto(one, read_reproduction(run, one))
    return found, problems


def _directories(context: ProjectContext, given: Sequence[Path]) -> Iterator[list[RunDirectory]]:
    """Yield the runs of each folder that was named; the newest one if none was."""
    if not given:
        yield [latest_run(context.project.root)]
    for path in given:
        yield runs_in(path)
