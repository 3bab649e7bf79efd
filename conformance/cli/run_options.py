"""Options of commands that make a run: the earlier run to compare with, the policy, the site."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from conformance.app.context import load_context
from conformance.app.since import SinceOptions
from conformance.cache_folder import SHARED_URL, SHARED_WRITE
from conformance.cli.options import variable_option
from conformance.engine.exit_policy import FailOn
from conformance.report.report_json import make_report_json

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conformance.cli.output import Output
    from conformance.engine.runs.directory import RunDirectory
    from conformance.report.report import Report

also_option = click.option(
    "--also", multiple=True, metavar="DIR",
    help="Folder of more cases, which may be missing or empty; repeatable.",
)  # fmt: skip
site_option = click.option(
    "--report/--no-report", "site", default=None,
    help="Make the pages of the run, like `conformance report`.  [default: in a terminal]",
)  # fmt: skip
verbose_option = click.option(
    "--verbose", "-v", is_flag=True,
    help="Show every case instead of families, and the traceback of every unexpected job.",
)  # fmt: skip


cache_option = variable_option(
    "--cache", SHARED_URL, metavar="URL|none", help="Shared cache, e.g. s3://BUCKET/PREFIX.  "
    f"[default: `cache` in pyproject.toml, or {SHARED_URL}]",
)  # fmt: skip
_cache_write_option = variable_option(
    "--cache-write", SHARED_WRITE, flag_value="1", help="Add results to the shared cache.",
)  # fmt: skip


def cache_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options `--cache` and `--cache-write`."""
    return cache_option(_cache_write_option(command))


def since_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options `--since` and `--store`, as one value called `compared`, a `SinceOptions`."""

    @wraps(command)
    def call(*, since: str | None, store: str | None, **others: Any) -> Any:
        compared = SinceOptions(since=since, store=store, context=load_context())
        # Before the run, which may take hours.
        compared.check()
        return command(compared=compared, **others)

    since = click.option(
        "--since", metavar="RUN|none",
        help="Directory or id of the run to compare with.  [default: the last of the same matrix]",
    )  # fmt: skip
    store = click.option(
        "--store", metavar="PATH|URL", envvar="CONFORMANCE_STORE",
        help="Database of `conformance history`: the last run if its directory is gone, and linked "
        "issues.",
    )  # fmt: skip
    return since(store(call))


def fail_on_option(default: str | None) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return the option `--fail-on`.

    Args:
        default: The default, None for the setting of the shards.
    """
    return click.option(
        "--fail-on", type=click.Choice(list(map(str, FailOn))), default=default,
        show_default=default or "as the shards were run",
        help="Exit with 1 for any unexpected result, only for results that are new since the last "
        "run (with --store also for those without a linked issue), or never.",
    )  # fmt: skip


def write_outputs(
    report: Report, directory: RunDirectory, output: Output, *, site: bool | None
) -> None:
    """Write the report on a run as JSON and as pages, each if requested.

    Args:
        report: The report.
        directory: The run.
        output: The file of the JSON; a terminal also decides whether pages are made by default.
        site: Whether pages are made; None for only in a terminal.
    """
    # Rendered only if it is written: large runs have megabytes of JSON.
    if output.json_file is not None:
        output.write_json(make_report_json(report))
    if site or (site is None and output.console.is_terminal):
        write_site_of(directory.path)


def write_site_of(run: Path) -> None:
    """Write the site of a run like `conformance report`.

    Args:
        run: Directory of the run.
    """
    # Looked up by name: importing the module would import the renderers of all formats.
    click_context = click.get_current_context()
    group = click_context.find_root().command
    command = group.get_command(click_context, "report") if isinstance(group, click.Group) else None
    if command is not None:
        click_context.invoke(command, folders=(run,))
