"""`conformance upgrade`: what breaks and what changes silently from one release to another."""

from __future__ import annotations

from contextlib import closing, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import click

from conformance.app.axes import nightlies_answer, upgrade_points
from conformance.app.context import load_context
from conformance.app.output_files import check_writable, write_file
from conformance.app.session import Session
from conformance.app.upgrade_targets import subject_of
from conformance.cli.console import open_console
from conformance.cli.options import jobs_option, json_option, no_downloads_option, with_option
from conformance.cli.progress import ProgressLines
from conformance.cli.run_output import write_site_of
from conformance.cli.suite_options import in_suite_options
from conformance.cli.words import CASES, RELEASES, SUITES
from conformance.engine.describing import describe, ended
from conformance.engine.plan import Plan
from conformance.engine.rundir import Results, RunDirectory, new_run
from conformance.errors import NothingSelectedError
from conformance.files import readable_json
from conformance.model.outcome import ExitCode
from conformance.report.upgrade_culprits import unclear, with_culprits
from conformance.report.upgrade_data import upgrade_json
from conformance.report.upgrade_text import asides, upgrade_lines, upgrade_markdown
from conformance.report.upgraded import Upgraded
from conformance.suites.suite import TIMEOUT
from conformance.triage.bisect.points import RESTART, Points
from conformance.triage.blame.cases import blame_case
from conformance.triage.blame.telling import step_line
from conformance.triage.upgrade.blaming import culprits_of
from conformance.triage.upgrade.compared import Axis
from conformance.triage.upgrade.effect import BREAKING, Effect
from conformance.triage.upgrade.upgrading import Upgrade
from conformance.wording import plural

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sized

    from rich.console import Console
    from rich.status import Status

    from conformance.app.context import ProjectContext
    from conformance.app.suite_target import InSuite
    from conformance.app.upgrade_targets import Subject
    from conformance.cells.cell import Cell
    from conformance.engine.prepare import Preparation
    from conformance.model.record import Record
    from conformance.model.run import Exclusion, RunInfo
    from conformance.triage.blame.blamed import Step as Mixed
    from conformance.triage.upgrade.blaming import Search
    from conformance.triage.upgrade.culprits import Culprits

    Prepare = Callable[[Iterable[Cell]], Preparation]

PLATFORM: Final = "cpu8"
"""Where cases are tried unless something else is said."""
ASKED: Final = {None: frozenset[Effect](), "breaking": BREAKING, "all": frozenset(Effect)}
"""What an upgrade must do to a case for its package to be searched, by what is asked."""
INTERRUPTED: Final = f"conformance: interrupted; {RESTART}"


@click.command("upgrade")
@click.argument("before", metavar="FROM", type=RELEASES)
@click.argument("after", metavar="TO", type=RELEASES)
@click.argument("select", nargs=-1, type=CASES)
@click.option(
    "--platform", "platforms", multiple=True, metavar="PLATFORM",
    help=f"E.g. cpu4 or tpu:v5e:2x2; repeatable.  [default: {PLATFORM}]",
)  # fmt: skip
@click.option(
    "--thorough", is_flag=True,
    help="Try every case on every release: also what changes on the way, and back.",
)  # fmt: skip
@click.option(
    "--blame",
    "asked",
    flag_value="breaking",
    help="Search for the package of each change that breaks, or silently changes a value, where "
    "others than jax's own changed with it; half a minute each.",
)
@click.option("--blame-all", "asked", flag_value="all", help="The same of whatever changed.")
@click.option(
    "--suite", "suites", multiple=True, metavar="NAME|PATH", type=SUITES,
    help="A pytest suite instead of cases: its name, or a file or folder of tests; repeatable. "
    "What comes after -- is pytest's own.",
)  # fmt: skip
@click.option(
    "--timeout", type=click.FloatRange(0.1), metavar="SECONDS",
    help=f"Of one test of a suite.  [default: as the suite says, {TIMEOUT:g} for a path]",
)  # fmt: skip
@in_suite_options
@with_option
@no_downloads_option
@click.option("--fresh", is_flag=True, help="Try everything anew, whatever is known of it.")
@jobs_option()
@json_option("the whole result")
@click.option(
    "--markdown", "markdown_file", type=click.Path(path_type=Path, allow_dash=True),
    metavar="FILE", help="Write it as Markdown; - is standard output.",
)  # fmt: skip
@click.option(
    "--report/--no-report", "site", default=None,
    help="Make pages of all that was tried.  [default: in a terminal]",
)  # fmt: skip
@click.option(
    "--verbose", "-v", is_flag=True, help="Name every case, and show every group and traceback."
)
def command(
    *,
    before: str,
    after: str,
    select: tuple[str, ...],
    platforms: tuple[str, ...],
    thorough: bool,
    asked: str | None,
    suites: tuple[str, ...],
    timeout: float | None,
    suite: InSuite,
    wanted: tuple[str, ...],
    fresh: bool,
    jobs: int,
    json_file: Path | None,
    markdown_file: Path | None,
    site: bool | None,
    verbose: bool,
) -> int:
    """Say what an upgrade of jax breaks, what it silently changes, and since which release.

    FROM and TO are releases, specifiers (the newest that fits), locks (pinned requirements,
    pylock.toml, uv.lock, poetry.lock), or path: and an interpreter. Both are tried first; what
    differs is tried on the releases between until each change is known to the release.

    \b
    conformance upgrade 0.5.3 0.12.0.1                    all cases
    conformance upgrade 0.5.3 latest path/to/your/cases   your own
    conformance upgrade '~=0.6.0' latest shard_map_while --platform cpu8 --platform tpu:v5e:2x2
    conformance upgrade 0.5.3 latest tests/cases --with ./my-package
    conformance upgrade 0.5.3 latest --suite tests --with ./my-package -- -m "not slow"
    conformance upgrade requirements.txt latest           from what a lock pins
    conformance upgrade path:/opt/env/bin/python latest   from an environment that exists
    conformance upgrade 0.5.3 latest --blame              and which package it is
    conformance upgrade 0.5.3 latest --markdown upgrade.md

    Exit status: 0 nothing breaks, 1 something breaks or silently computes something else, 2 usage,
    3 nothing selected, 4 infrastructure, 70 internal error, 130 interrupted.
    """  # noqa: D301 - \b is click's own mark
    context, files = load_context(), Files(json_file, markdown_file)
    files.check()
    console = open_console(stderr=files.printed)
    places = tuple(dict.fromkeys(platforms)) or (PLATFORM,)
    subject = subject_of(
        context, select, suites=suites, asked=suite, timeout=timeout, wanted=wanted, slots=jobs,
        fresh=fresh,
    )  # fmt: skip
    points = {name: _points(context, (before, after), name, subject.prepare) for name in places}
    directory = new_run(context.project.root)
    locks = {cell: lock for p in points.values() for cell, lock in p.locks.items()}
    cases, executor = subject.found((p[n] for p in points.values() for n in (0, -1)), locks)
    trier = Session(context=context, fresh=fresh).trier(executor, directory.blobs)
    upgrade = Upgrade(
        cases, [_axis(name, found) for name, found in points.items()],
        root=subject.root, trier=trier, blobs=directory.blobs, thorough=thorough,
    )  # fmt: skip
    try:
        records = _run(upgrade, directory, console)
    except KeyboardInterrupt:
        click.echo(INTERRUPTED, err=True)
        return ExitCode.INTERRUPTED
    exclusions = tuple(entry for found in points.values() for entry in found.exclusions)
    upgraded = _upgraded(upgrade, exclusions, records, subject)
    info = _described(upgrade, exclusions, subject)
    directory.write_run(ended(info, _status(upgraded), executor.identities))
    _refuse_nothing(upgraded)
    search = partial(
        blame_case, releases=context.releases, prepare=subject.prepare, trier=trier,
        locks=locks, cache=context.cache, wanted=subject.wanted,
    )  # fmt: skip
    upgraded, whole = _blamed(upgraded, ASKED[asked], search, console)
    _tell(console, upgraded, directory, every=verbose)
    files.write(upgraded, directory)
    if site or (site is None and console.is_terminal):
        write_site_of(directory.path)
    if not whole:
        click.echo(INTERRUPTED, err=True)
    return _status(upgraded) if whole else ExitCode.INTERRUPTED


class Files(NamedTuple):
    """Where it is written beside its run.

    Attributes:
        json: What `--json` says.
        markdown: What `--markdown` says.
    """

    json: Path | None
    markdown: Path | None

    @property
    def printed(self) -> bool:
        """Whether one of them is standard output, where nothing else is told then."""
        return "-" in {str(self.json), str(self.markdown)}

    def check(self) -> None:
        """Refuse what cannot be written, before anything is tried."""
        for option, file in (("--json", self.json), ("--markdown", self.markdown)):
            if file is not None:
                check_writable(option, file)

    def write(self, upgraded: Upgraded, directory: RunDirectory) -> None:
        """Write what an upgrade came to, there and in its run's directory."""
        content = readable_json(upgrade_json(upgraded))
        directory.write_upgrade(content)
        if self.json is not None:
            write_file("--json", self.json, content)
        if self.markdown is not None:
            write_file("--markdown", self.markdown, upgrade_markdown(upgraded).encode())


def _points(
    context: ProjectContext, ends: tuple[str, str], platform: str, prepare: Prepare
) -> Points:
    """Return what lies between both ends on a platform, looked up."""
    return Points(
        upgrade_points(context, ends, platform),
        prepare,
        check=partial(nightlies_answer, context),
    )


def _axis(platform: str, points: Points) -> Axis:
    return Axis(platform=platform, cells=tuple(points), labels=points.labels)


def _run(upgrade: Upgrade, directory: RunDirectory, console: Console) -> list[Record]:
    """Try everything, and keep what comes of it."""
    records = []
    with (
        closing(Results(directory)) as results,
        console.status("trying both ends", spinner="line") as status,
        nullcontext() if console.is_terminal else ProgressLines() as lines,
    ):
        for record in upgrade.run():
            records.append(record)
            results.append(record, sync=not record.cached)
            if lines is None:
                status.update(f"{plural(len(records), 'job')}: {record.case} on {record.cell}")
            else:
                lines.take(record)
    return records


def _blamed(
    upgraded: Upgraded, effects: Collection[Effect], search: Search, console: Console
) -> tuple[Upgraded, bool]:
    """Search for the packages that made changes.

    Returns:
        The upgrade with what was found out, and whether that is all: not after an interrupt.
    """
    found: dict[int, Culprits] = {}
    changes = list(unclear(upgraded, effects))
    try:
        with console.status("", spinner="line") as status:
            for number, (one, step) in enumerate(changes, 1):
                head = f"which package: {number} of {len(changes)}: {one.case.id}"
                status.update(head)
                say = partial(_show, status, head)
                found[id(step)] = culprits_of(one, step, partial(search, progress=say))
    except KeyboardInterrupt:
        return with_culprits(upgraded, found), False
    return with_culprits(upgraded, found), True


def _show(status: Status, head: str, tried: Mixed, packages: int) -> None:
    status.update(f"{head}: {step_line(tried, packages)}")


def _described(upgrade: Upgrade, exclusions: tuple[Exclusion, ...], subject: Subject) -> RunInfo:
    """Return what was tried as a run, which reports read as any other."""
    jobs = tuple(upgrade.jobs())
    cells = {job.planned.cell.id: job.planned for job in jobs}
    plan = Plan(jobs=jobs, exclusions=exclusions, cells=tuple(cells.values()))
    return describe(plan, request={}, matrix="", root=subject.root, suite=subject.described)


def _upgraded(
    upgrade: Upgrade, exclusions: tuple[Exclusion, ...], records: Sized, subject: Subject
) -> Upgraded:
    compared, root = tuple(upgrade.compared()), str(subject.root)
    return Upgraded(compared=compared, left_out=exclusions, jobs=len(records), root=root)


def _tell(console: Console, upgraded: Upgraded, directory: RunDirectory, *, every: bool) -> None:
    for line in upgrade_lines(upgraded, every=every):
        console.print(line, soft_wrap=True)
    console.print(f"results in {directory.path}", soft_wrap=True)


def _refuse_nothing(upgraded: Upgraded) -> None:
    """Refuse to tell of nothing: neither what was compared, nor what disagrees with itself."""
    if not upgraded.whole and not any(one.flaky for one in upgraded.compared):
        raise NothingSelectedError(f"nothing to compare; {'; '.join(asides(upgraded))}")


def _status(upgraded: Upgraded) -> ExitCode:
    if not upgraded.whole:
        return ExitCode.NOTHING
    return ExitCode.UNEXPECTED if upgraded.breaks else ExitCode.OK
