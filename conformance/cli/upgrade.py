"""`conformance upgrade`: find what breaks or silently changes between two releases."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from conformance.app.context import load_context
from conformance.app.output_files import check_writable, write_file
from conformance.app.upgrade.run import UpgradeRun, find_exit_code
from conformance.app.upgrade.subject import PLATFORM, UpgradeOptions
from conformance.cli.executor_options import executor_options
from conformance.cli.options import (
    fresh_option,
    no_downloads_option,
    timeout_option,
    with_option,
)
from conformance.cli.output import STANDARD_OUTPUT, json_option, open_console
from conformance.cli.progress import explain_interrupt
from conformance.cli.run_options import cache_options, write_site_of
from conformance.cli.target_options import origin_options, suite_options
from conformance.cli.trials_progress import trials_progress
from conformance.cli.words import CASES, RELEASES, SUITES
from conformance.files import readable_json
from conformance.model.outcome import ExitCode
from conformance.report.upgrade.file import make_upgrade_file
from conformance.report.upgrade.text import render_upgrade, render_upgrade_markdown
from conformance.search.axes import RESTART
from conformance.suites.suite import TIMEOUT

if TYPE_CHECKING:
    from conformance.cli.output import Output


@click.command("upgrade")
@click.argument("before", metavar="FROM", type=RELEASES)
@click.argument("after", metavar="TO", type=RELEASES)
@click.argument("select", nargs=-1, type=CASES)
@click.option(
    "--platform", "platforms", multiple=True, metavar="PLATFORM",
    help=f"Platform, e.g. cpu4 or tpu:v5e:2x2; repeatable.  [default: {PLATFORM}]",
)  # fmt: skip
@click.option(
    "--thorough", is_flag=True,
    help="Try every case on every release, to find changes that are reverted in between.",
)  # fmt: skip
@click.option(
    "--blame", flag_value="breaking",
    help="Find the package of each change that breaks or silently changes a value, if packages "
    "other than jax changed, too; half a minute each.",
)  # fmt: skip
@click.option("--blame-all", "blame", flag_value="all", help="Find the package of every change.")
@click.option(
    "--suite", "suites", multiple=True, metavar="NAME|PATH", type=SUITES,
    help="A pytest suite instead of cases: its name, or a file or folder of tests; repeatable. "
    "Arguments after -- are passed to pytest.",
)  # fmt: skip
@click.option(
    "--time", is_flag=True,
    help="Compare time and memory, too, and find the release of each change; without SELECT, of "
    "the listed functions or the family performance.",
)  # fmt: skip
@timeout_option(f"Timeout of one test of a suite.  [default: of the suite, {TIMEOUT:g} for a path]")
@suite_options
@origin_options
@with_option
@no_downloads_option
@fresh_option
@cache_options
@executor_options("Number of parallel trials.")
@json_option("the whole result")
@click.option(
    "--markdown", "markdown_file", type=click.Path(path_type=Path, allow_dash=True),
    metavar="FILE", help="Write the result as Markdown; - is standard output.",
)  # fmt: skip
@click.option(
    "--report/--no-report", "site", default=None,
    help="Make the pages of the upgrade.  [default: in a terminal]",
)  # fmt: skip
@click.option("--verbose", "-v", is_flag=True, help="Show every case, group and traceback.")
def command(
    *,
    before: str,
    after: str,
    select: tuple[str, ...],
    output: Output,
    markdown_file: Path | None,
    site: bool | None,
    verbose: bool,
    **options: Any,
) -> int:
    """Find what an upgrade of jax breaks or silently changes, and in which release.

    FROM and TO are releases, specifiers (the newest release that fits), locks (pinned requirements,
    pylock.toml, uv.lock, poetry.lock), or path: and an interpreter. Both ends are tried first;
    cases that differ are tried on the releases between, until the release of each change is known.

    conformance upgrade 0.5.3 0.12.0.1                    all cases
    conformance upgrade 0.5.3 latest path/to/your/cases   your own cases
    conformance upgrade '~=0.6.0' latest shard_map_while --platform cpu8 --platform tpu:v5e:2x2
    conformance upgrade 0.5.3 latest tests/cases --with ./my-package
    conformance upgrade 0.5.3 latest --suite tests --with ./my-package -- -m "not slow"
    conformance upgrade requirements.txt latest           from the versions of a lock
    conformance upgrade path:/opt/env/bin/python latest   from an existing environment
    conformance upgrade 0.5.3 latest --blame --layers --commits    package, layer, commit

    Exit status: 0 nothing breaks, 1 a case breaks or silently changes, 3 nothing selected.
    """
    if markdown_file is not None:
        check_writable("--markdown", markdown_file)
    console = open_console(stderr=output.prints_json or str(markdown_file) == STANDARD_OUTPUT)
    # Outside of the interrupt block: nothing is recorded yet that the same command could reuse.
    run = UpgradeRun(load_context(), (before, after), select, UpgradeOptions(**options))
    with explain_interrupt(RESTART), trials_progress(console) as progress:
        upgraded = run.execute(progress.begin, progress.take)
    # Without the interrupt block: an interrupted `blame` returns its results so far.
    with console.status("", spinner="line") as status:
        upgraded, complete = run.blame(upgraded, status.update)
        if complete and options["time"]:
            upgraded = run.compare_costs(upgraded, status.update)
    for line in (*render_upgrade(upgraded, every=verbose), f"results in {run.directory.path}"):
        console.print(line)
    content = make_upgrade_file(upgraded)
    # With the run, so that `report` can render the upgrade again.
    run.directory.write_upgrade(readable_json(content))
    output.write_json(content)
    if markdown_file is not None:
        write_file("--markdown", markdown_file, render_upgrade_markdown(upgraded).encode())
    if site or (site is None and console.is_terminal):
        write_site_of(run.directory.path)
    if not complete:
        click.echo(f"conformance: interrupted; {RESTART}", err=True)
    return find_exit_code(upgraded) if complete else ExitCode.INTERRUPTED
