"""The output of commands that make a run: its report as JSON and as pages."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from conformance.app.output_files import write_file
from conformance.files import readable_json
from conformance.report.data import make_report_json

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console

    from conformance.engine.run_directory import RunDirectory
    from conformance.report.report import Report


def hand_out(
    report: Report,
    directory: RunDirectory,
    console: Console,
    *,
    json_file: Path | None,
    site: bool | None,
) -> None:
    """Write the report on a run as JSON and as pages, if that is asked for.

    Args:
        report: The report.
        directory: The run.
        console: Its kind, a terminal or not, decides whether pages are made by default.
        json_file: File of the JSON, None for none.
        site: Whether pages are made; None for only in a terminal.
    """
    if json_file is not None:
        write_file("--json", json_file, readable_json(make_report_json(report)))
    if site or (site is None and console.is_terminal):
        write_site_of(directory.path)


def write_site_of(run: Path) -> None:
    """Write the site of a run by `conformance report`, which is imported only now.

    Args:
        run: Directory of the run.
    """
    click_context = click.get_current_context()
    group = click_context.find_root().command
    command = group.get_command(click_context, "report") if isinstance(group, click.Group) else None
    if command is not None:
        click_context.invoke(command, runs=(run,))
