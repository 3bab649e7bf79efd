"""`conformance upgrade`: what breaks and what changes silently from one release to another."""

from __future__ import annotations

from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click
from rich.console import Console

from conformance.cells.accelerators import Turns
from conformance.cli.axes import nightlies_answer, upgrade_points
from conformance.cli.named_files import as_json, check_writable, write_file
from conformance.cli.options import jobs_option, json_option, with_option
from conformance.cli.preparing import prepare_in, wanted_in
from conformance.cli.run import write_site_of
from conformance.cli.setting import here
from conformance.engine.cache import ResultCache
from conformance.engine.describing import describe, ended
from conformance.engine.judging import Judge
from conformance.engine.local import LocalExecutor
from conformance.engine.plan import Plan
from conformance.engine.prepare import Provider
from conformance.engine.rundir import Results, RunDirectory, new_run
from conformance.engine.trying import Trier
from conformance.errors import NothingSelectedError
from conformance.model.outcome import ExitCode
from conformance.report.upgrade_culprits import unclear, with_culprits
from conformance.report.upgrade_data import upgrade_json
from conformance.report.upgrade_text import asides, upgrade_lines, upgrade_markdown
from conformance.report.upgraded import Upgraded
from conformance.triage.bisect.points import RESTART, Points
from conformance.triage.blame.cases import blame_case
from conformance.triage.blame.telling import step_line
from conformance.triage.upgrade.culprits import culprits_of
from conformance.triage.upgrade.effect import BREAKING, Effect
from conformance.triage.upgrade.upgrading import Axis, Upgrade

if TYPE_CHECKING:
    from collections.abc import Collection

    from rich.status import Status

    from conformance.cli.setting import Setting
    from conformance.model.record import Record
    from conformance.model.run import Exclusion
    from conformance.triage.blame.blamed import Step as Mixed
    from conformance.triage.upgrade.culprits import Culprits, Search

PLATFORM: Final = "cpu8"
"""Where cases are tried unless something else is said."""
INTERRUPTED: Final = f"conformance: interrupted; {RESTART}"


@click.command("upgrade", short_help="What breaks and what changes from one release to another.")
@click.argument("before", metavar="FROM")
@click.argument("after", metavar="TO")
@click.argument("select", nargs=-1)
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
@with_option
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
@click.option("--verbose", "-v", is_flag=True, help="Name every case, and show every group.")
def command(
    *,
    before: str,
    after: str,
    select: tuple[str, ...],
    platforms: tuple[str, ...],
    thorough: bool,
    asked: str | None,
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
    conformance upgrade requirements.txt latest           from what a lock pins
    conformance upgrade path:/opt/env/bin/python latest   from an environment that exists
    conformance upgrade 0.5.3 latest --blame              and which package it is
    conformance upgrade 0.5.3 latest --markdown upgrade.md

    Exit status: 0 nothing breaks, 1 something breaks or silently computes something else, 2 usage,
    3 nothing selected, 4 infrastructure, 130 interrupted.
    """  # noqa: D301 - \b is click's own mark
    setting = here()
    for option, file in (("--json", json_file), ("--markdown", markdown_file)):
        if file is not None:
            check_writable(option, file)
    console = Console(
        stderr="-" in {str(json_file), str(markdown_file)}, highlight=False, markup=False
    )
    places = tuple(dict.fromkeys(platforms)) or (PLATFORM,)
    wanted = wanted_in(setting, wanted)
    points = {name: _points(setting, (before, after), name, wanted) for name in places}
    directory = new_run(setting.project.root)
    locks = {cell: lock for found in points.values() for cell, lock in found.locks.items()}
    executor = LocalExecutor(
        Provider(locks, setting.cache).open, slots=jobs, turns=Turns(setting.cache)
    )
    trier = Trier(
        executor=executor,
        cache=ResultCache(setting.cache, fresh=fresh),
        judge=Judge(directory.blobs),
        blobs=directory.blobs,
    )
    upgrade = Upgrade(
        setting.cases(select),
        [_axis(name, found) for name, found in points.items()],
        root=setting.project.root,
        trier=trier,
        blobs=directory.blobs,
        thorough=thorough,
    )
    try:
        records = _run(upgrade, directory, console)
    except KeyboardInterrupt:
        click.echo(INTERRUPTED, err=True)
        return ExitCode.INTERRUPTED
    exclusions = tuple(entry for found in points.values() for entry in found.exclusions)
    upgraded = Upgraded(compared=tuple(upgrade.compared()), left_out=exclusions, jobs=len(records))
    plan = _tried(upgrade, exclusions)
    info = describe(plan, request={}, matrix="", root=setting.project.root)
    directory.write_run(ended(info, _status(upgraded), executor.identities))
    if not upgraded.whole:
        raise NothingSelectedError(f"nothing to compare; {'; '.join(asides(upgraded))}")
    whole = True
    if asked is not None:
        search = partial(
            blame_case, releases=setting.releases, cache=setting.cache, trier=trier, locks=locks,
            prepare=partial(prepare_in, setting, wanted=wanted), wanted=wanted,
        )  # fmt: skip
        effects = BREAKING if asked == "breaking" else frozenset(Effect)
        upgraded, whole = _blamed(upgraded, effects, search, console)
    content = as_json(upgrade_json(upgraded))
    directory.write_upgrade(content)
    _tell(console, upgraded, directory, every=verbose)
    if json_file is not None:
        write_file("--json", json_file, content)
    if markdown_file is not None:
        write_file("--markdown", markdown_file, upgrade_markdown(upgraded).encode())
    if site or (site is None and console.is_terminal):
        write_site_of(directory.path)
    if not whole:
        click.echo(INTERRUPTED, err=True)
        return ExitCode.INTERRUPTED
    return _status(upgraded)


def _points(
    setting: Setting, ends: tuple[str, str], platform: str, wanted: tuple[str, ...]
) -> Points:
    """Return what lies between both ends on a platform, looked up."""
    return Points(
        upgrade_points(setting, ends, platform),
        partial(prepare_in, setting, wanted=wanted),
        check=partial(nightlies_answer, setting),
    )


def _axis(platform: str, points: Points) -> Axis:
    return Axis(platform=platform, cells=tuple(points), labels=points.labels)


def _run(upgrade: Upgrade, directory: RunDirectory, console: Console) -> list[Record]:
    """Try everything, and keep what comes of it."""
    records = []
    with (
        closing(Results(directory)) as results,
        console.status("trying both ends", spinner="line") as status,
    ):
        for record in upgrade.run():
            records.append(record)
            results.append(record, sync=not record.cached)
            status.update(f"{len(records):,} jobs: {record.case} on {record.cell}")
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


def _tried(upgrade: Upgrade, exclusions: tuple[Exclusion, ...]) -> Plan:
    """Return what was tried as the plan of a run, which reports read as any other."""
    jobs = tuple(upgrade.jobs())
    cells = {job.planned.cell.id: job.planned for job in jobs}
    return Plan(jobs=jobs, exclusions=exclusions, cells=tuple(cells.values()))


def _tell(console: Console, upgraded: Upgraded, directory: RunDirectory, *, every: bool) -> None:
    for line in upgrade_lines(upgraded, every=every):
        console.print(line, soft_wrap=True)
    console.print(f"results in {directory.path}", soft_wrap=True)


def _status(upgraded: Upgraded) -> ExitCode:
    return ExitCode.UNEXPECTED if upgraded.breaks else ExitCode.OK
