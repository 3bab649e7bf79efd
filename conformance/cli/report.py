"""`conformance report`: what runs came to, as a site and in the formats of others."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console

from conformance.cli.run import default_jobs
from conformance.cli.setting import here
from conformance.cli.state import write_state
from conformance.engine.diff_cache import DiffCache
from conformance.engine.loading import load_all, runs_in
from conformance.engine.rundir import latest_run
from conformance.errors import NothingSelectedError, UsageError
from conformance.files import write_atomically
from conformance.model.outcome import ExitCode
from conformance.report.report import Report
from conformance.report.site.site import site

if TYPE_CHECKING:
    from collections.abc import Iterable

    from conformance.cli.setting import Setting

STATE = Path("reports") / "README.md"
SITE = "report"
"""Folder of a run's site, in its directory."""


@click.command("report", short_help="Show what runs came to, as a site and in other formats.")
@click.argument("runs", nargs=-1, metavar="[RUN|DIR]...", type=click.Path(path_type=Path))
@click.option(
    "--out", metavar="DIR", type=click.Path(path_type=Path),
    help="Folder of the site.  [default: report in the run's directory]",
)  # fmt: skip
@click.option(
    "--goldens", is_flag=True,
    help="Tell what the goldens have, of no run: a Markdown page.  [--out: reports/README.md]",
)  # fmt: skip
@click.option("--check", is_flag=True, help="With --goldens: only see whether it is current.")
def command(*, runs: tuple[Path, ...], out: Path | None, goldens: bool, check: bool) -> int:
    """Show what runs came to.

    RUN is the directory of a run, DIR a folder of them; the newest run by default. Of a job that
    several runs hold, the newest one's counts.

    \b
    conformance report                                  the newest run
    conformance report reports/runs --out site          every run there, with their history
    conformance report nightly/shard-* --out site       parts of one run, put together
    conformance report --goldens                        the state of JAX, as reviewed
    """  # noqa: D301 - \b is click's own mark
    setting = here()
    if goldens:
        if runs:
            raise UsageError("--goldens tells of no run: name none with it")
        write_state(setting, out or setting.project.root / STATE, check=check)
        return ExitCode.OK
    console = Console(highlight=False)
    report, folder = _report(setting, runs)
    target = out or folder / SITE
    write_site(report, target, setting.cache)
    for problem in report.problems:
        click.echo(f"conformance: {problem}", err=True)
    console.print(f"report in {target / 'index.html'}", soft_wrap=True)
    return ExitCode.USAGE if report.problems else ExitCode.OK


def _report(setting: Setting, given: Iterable[Path]) -> tuple[Report, Path]:
    """Return the report on runs, and the directory of the newest."""
    directories = [run for path in given for run in runs_in(path)]
    directories = directories or [latest_run(setting.project.root)]
    loaded, problems = load_all(directories)
    if not loaded:
        raise NothingSelectedError("\n".join(problems))
    ordered = sorted(loaded, key=lambda run: (run.info.started, run.id))
    newest = next(d.path for d in directories if d.id == ordered[-1].id)
    return Report(tuple(ordered), tuple(problems)), newest


def write_site(report: Report, folder: Path, cache: Path) -> None:
    """Write the site.

    Args:
        report: What is told.
        folder: Where to; files of another report that this one has not are left.
        cache: Cache folder.

    Raises:
        InfrastructureError: If the disk refuses.
    """
    for path, content in site(report, DiffCache(cache, default_jobs())):
        write_atomically(folder / path, content)
