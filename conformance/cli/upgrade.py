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
from conformance.cli.preparing import prepare_in
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
from conformance.report.upgrade_data import upgrade_json
from conformance.report.upgrade_text import asides, upgrade_lines, upgrade_markdown
from conformance.report.upgraded import Upgraded
from conformance.triage.bisect.points import Points
from conformance.triage.upgrade.upgrading import Axis, Upgrade

if TYPE_CHECKING:
    from collections.abc import Iterable

    from conformance.cli.setting import Setting
    from conformance.model.record import Record
    from conformance.model.run import Exclusion

PLATFORM: Final = "cpu8"
"""Where cases are tried unless something else is said."""


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
    points = {name: _points(setting, (before, after), name, wanted) for name in places}
    directory = new_run(setting.project.root)
    executor = _executor(setting, points.values(), slots=jobs)
    upgrade = Upgrade(
        setting.cases(select),
        [_axis(name, found) for name, found in points.items()],
        root=setting.project.root,
        trier=Trier(
            executor=executor,
            cache=ResultCache(setting.cache, fresh=fresh),
            judge=Judge(directory.blobs),
            blobs=directory.blobs,
        ),
        blobs=directory.blobs,
        thorough=thorough,
    )
    try:
        records = _run(upgrade, directory, console)
    except KeyboardInterrupt:
        click.echo("conformance: interrupted; the same command goes on where it was", err=True)
        return ExitCode.INTERRUPTED
    exclusions = tuple(entry for found in points.values() for entry in found.exclusions)
    upgraded = Upgraded(compared=tuple(upgrade.compared()), left_out=exclusions, jobs=len(records))
    plan = _tried(upgrade, exclusions)
    info = describe(plan, request={}, matrix="", root=setting.project.root)
    directory.write_run(ended(info, _status(upgraded), executor.identities))
    if not upgraded.whole:
        raise NothingSelectedError(f"nothing to compare; {'; '.join(asides(upgraded))}")
    content = as_json(upgrade_json(upgraded))
    directory.write_upgrade(content)
    _tell(console, upgraded, directory, every=verbose)
    if json_file is not None:
        write_file("--json", json_file, content)
    if markdown_file is not None:
        write_file("--markdown", markdown_file, upgrade_markdown(upgraded).encode())
    if site or (site is None and console.is_terminal):
        write_site_of(directory.path)
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


def _executor(setting: Setting, points: Iterable[Points], *, slots: int) -> LocalExecutor:
    locks = {cell: lock for found in points for cell, lock in found.locks.items()}
    provider = Provider(locks, setting.cache)
    return LocalExecutor(provider.open, slots=slots, turns=Turns(setting.cache))


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
