"""`conformance suite history`: what a named suite says of releases, kept and committed."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from conformance.app.context import load_context
from conformance.app.notes import print_note
from conformance.app.session import Session
from conformance.app.suite_history import history_file, read_history
from conformance.cli.words import SUITES
from conformance.engine.loading import load, runs_in
from conformance.engine.plan import make_plan
from conformance.engine.recorded import recorded_endings
from conformance.engine.rundir import RUN
from conformance.errors import ConformanceError, UsageError
from conformance.files import write_atomically
from conformance.judge.deviation import applicable
from conformance.locking import locked
from conformance.model.outcome import ExitCode
from conformance.report.conformance_data import decoded, encoded
from conformance.report.conformance_history import Conformance, Followed, Outcome, Result
from conformance.report.conformance_markdown import conformance_markdown
from conformance.report.conformance_runs import history_of, merged, suite_of, unfinished
from conformance.report.text import one_line
from conformance.suites.catalogue.definition import named_suite
from conformance.suites.catalogue.groups import OTHER, grouping, groups_of
from conformance.suites.catalogue.standards import CLAIMED
from conformance.suites.known.deviations import known_failures
from conformance.wording import plural

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from conformance.app.context import ProjectContext
    from conformance.engine.job import Job
    from conformance.engine.loading import LoadedRun
    from conformance.suites.catalogue.definition import NamedSuite

MATRIX: Final = "releases"
"""Where the cases beside a suite are recorded."""


class StaleHistoryError(ConformanceError):
    """The committed page does not say what the data give."""

    exit_code = 1


@click.command("history", short_help="Keep what a named suite says of releases.")
@click.argument("name", type=SUITES)
@click.argument("runs", nargs=-1, metavar="[RUN|DIR]...", type=click.Path(path_type=Path))
@click.option(
    "--file", "file", metavar="FILE", type=click.Path(path_type=Path),
    help="The data; the page is beside it.  [default: reports/TITLE.json]",
)  # fmt: skip
@click.option("--check", is_flag=True, help="Write nothing; only see whether the page is current.")
def history(*, name: str, runs: tuple[Path, ...], file: Path | None, check: bool) -> int:
    """Keep what a named suite says of releases, group by group.

    RUN is the directory of a complete run of the suite, DIR a folder of some: their releases come
    to those that the data have, and replace what these say of the same releases. Releases that are
    there need not be run again. A run is judged by the known failures as they are declared now:
    accepting some asks for no new run. What the suite does not test is told from the goldens of
    our own cases. Without a run the page is made anew from the data.

    \b
    conformance suite run array-api-tests --matrix releases
    conformance suite history array-api-tests reports/runs/20261122-152459-661978c
    conformance suite history array-api-tests --check

    A run of another revision of the suite, of other settings or on another platform does not go
    with what is there, for a difference would say nothing about JAX: keep it under another --file,
    or remove the data and begin anew with runs of every release.

    Exit status: 0 written, or current; 1 with --check: not current; 2 usage, as a run that is not
    complete.
    """  # noqa: D301 - \b is click's own mark
    context = load_context()
    suite = named_suite(name, context.project.suites)
    file = file or history_file(context, suite.definition.title)
    if check and runs:
        raise UsageError("--check tells of what is there: name no run with it")
    if file.suffix != ".json":
        raise UsageError(f"--file: expected a name that ends in .json, got {file}")
    with nullcontext() if check else locked({file.parent}, print_note):
        known, told, files = _made(context, suite, file, runs)
        if check:
            _compare(files, suite.name)
            return ExitCode.OK
        for path, content in files.items():
            write_atomically(path, content)
    _tell(known, told, files)
    return ExitCode.OK


def _made(
    context: ProjectContext, suite: NamedSuite, file: Path, runs: tuple[Path, ...]
) -> tuple[Conformance | None, Conformance, dict[Path, bytes]]:
    """Return the data as they are and as they are to be, and the files to write."""
    known = read_history(file)
    told = _with_runs(known, runs, suite, context)
    if told is None:
        raise UsageError(f"{file}: there are no data, and no run is named to make them from")
    told = replace(told, beside=_beside(context, suite, told))
    data = encoded(told)
    # Of the data as they are read back: the order in which runs told of tests does not count.
    page = conformance_markdown(decoded(data, str(file))).encode()
    return known, told, {file: data, file.with_suffix(".md"): page}


def _with_runs(
    known: Conformance | None, paths: Sequence[Path], suite: NamedSuite, context: ProjectContext
) -> Conformance | None:
    dates = {release.version: f"{release.date:%Y-%m-%d}" for release in context.releases.rows}
    group = grouping(suite.folder)
    for run, named in _complete(paths, suite.name):
        settings = suite_of(run).settings
        deviations = known_failures(
            suite.folder, examples=settings.get("max_examples"), seed=settings.get("seed"),
            standard=settings.get("standard", CLAIMED),
        )  # fmt: skip
        try:
            known = merged(known, history_of(run, dates, group, deviations))
        except UsageError as error:
            if not named:
                click.echo(f"conformance: {run.id}: is passed over: {error}", err=True)
                continue
            raise UsageError(
                f"{run.id}: {error}; keep it under another --file, or begin anew without the data"
            ) from None
    if known is None:
        return None
    tests = {
        name: replace(one, group=group(name) or one.group) for name, one in known.tests.items()
    }
    return replace(known, tests=tests)


def _complete(paths: Sequence[Path], suite: str) -> list[tuple[LoadedRun, bool]]:
    """Return the runs of a suite, the oldest first, and of each whether it is named itself.

    A folder holds runs of all kinds: of its runs those that are of another suite are passed over,
    and those that are not complete are told of, as are those that do not go with what is kept.

    Raises:
        UsageError: If a run that is named itself is of another suite, or not complete.
    """
    loaded = []
    for path in paths:
        named = (path / RUN).exists()
        for directory in runs_in(path):
            run = load(directory)
            if not named and (run.info.suite is None or run.info.suite.name != suite):
                continue
            if suite_of(run).name != suite:
                raise UsageError(f"{run.id}: is a run of {suite_of(run).name}, expected {suite}")
            wrong = unfinished(run)
            if wrong and named:
                raise UsageError(
                    f"{run.id}: {wrong}; run the suite whole, and to its end: "
                    f"conformance suite run {suite}"
                )
            if wrong:
                click.echo(f"conformance: {run.id}: is passed over: {wrong}", err=True)
            else:
                loaded.append((run, named))
    return sorted(loaded, key=lambda one: (one[0].info.started, one[0].id))


def _beside(context: ProjectContext, suite: NamedSuite, told: Conformance) -> dict[str, Followed]:
    """Return what goldens and deviations say of our own cases, in the releases of a history."""
    groups = groups_of(suite.folder)
    if groups is None or not groups.beside:
        return {}
    releases = {held.release for held in told.releases}
    cells = [cell for cell in context.cells(MATRIX, ())[0] if cell.release in releases]
    plan = make_plan(context.cases(groups.beside), Session(context=context).recorded(cells))
    found: dict[str, dict[str, Result]] = {}
    for job, _ in recorded_endings(plan):
        found.setdefault(job.case.id, {})[job.planned.release] = _recorded(job)
    docs = {job.case.id: one_line(job.case.doc.partition("\n\n")[0]) for job in plan.jobs}
    return {
        name: Followed(group=name.partition("/")[0], results=results, doc=docs[name])
        for name, results in sorted(found.items())
    }


def _recorded(job: Job) -> Result:
    """Return what is recorded of a case, whose deviations say whether it conforms."""
    planned = job.planned
    covered = applicable(job.case, planned.release, planned.cell.platform, planned.versions)
    if not covered:
        return Result(outcome=Outcome.PASSED)
    return Result(outcome=Outcome.KNOWN, reason=one_line(covered[0].reason), issue=covered[0].issue)


def _compare(files: dict[Path, bytes], suite: str) -> None:
    for path, content in files.items():
        if not path.exists() or path.read_bytes() != content:
            raise StaleHistoryError(
                f"{path}: is not what the data, the groups and the goldens give; make it anew: "
                f"conformance suite history {suite}"
            )


def _tell(before: Conformance | None, told: Conformance, files: Iterable[Path]) -> None:
    known = {held.release for held in before.releases} if before is not None else set()
    new = [held.release for held in told.releases if held.release not in known]
    said = f", {', '.join(new)} new" if new and known else ""
    click.echo(
        f"{plural(len(told.releases), 'release')}{said}; written: {', '.join(map(str, files))}"
    )
    lost = sorted(name for name, one in told.tests.items() if one.group == OTHER)
    if lost:
        click.echo(
            f"conformance: {plural(len(lost), 'test')} in no group, such as {lost[0]}", err=True
        )
