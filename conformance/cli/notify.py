"""`conformance notify`: one issue per root cause, opened, updated and closed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from conformance.app.context import load_context
from conformance.app.notes import print_note
from conformance.app.notification import (
    NotifyOptions,
    notification_data,
    notification_lines,
    notify,
)
from conformance.app.output_files import check_writable, write_file
from conformance.cli.options import json_option, store_option
from conformance.files import readable_json
from conformance.model.outcome import ExitCode
from conformance.notify.decisions import When


@click.command("notify")
@click.argument(
    "run", required=False, type=click.Path(path_type=Path, exists=True, file_okay=False)
)
@click.option("--github", "repository", metavar="OWNER/REPO", help="Repository of the issues.")
@click.option("--yes", is_flag=True, help="Apply the changes; the default only prints them.")
@click.option(
    "--when", type=click.Choice([str(one) for one in When]), default=str(When.CONFIRMED),
    show_default=True, help="Open issues for confirmed regressions only, or also for new ones.",
)  # fmt: skip
@click.option(
    "--limit", type=click.IntRange(0), default=10, show_default=True, metavar="N",
    help="Maximum number of issues to open; the others are listed.",
)  # fmt: skip
@click.option("--label", default="conformance", show_default=True, help="Label of the issues.")
@click.option("--url", default="", metavar="URL", help="Address of the site, for links.")
@click.option(
    "--api", metavar="URL", envvar="GITHUB_API_URL", default="https://api.github.com",
    show_default=True, help="Address of the API, e.g. of GitHub Enterprise (also GITHUB_API_URL).",
)  # fmt: skip
@store_option
@json_option("what is done")
def command(*, json_file: Path | None, **given: Any) -> int:
    """Open, update and close an issue for each root cause of a run.

    RUN is the directory of a run in the history database; the newest by default. Without --yes
    the command only prints the changes, and needs no token for a public repository. With --yes,
    GITHUB_TOKEN or GH_TOKEN must allow writing issues. Without --github, it uses the database
    alone.

    Flaky jobs and host faults open no issue. Only the marked part of an issue's text is updated.
    An issue closed as not planned stays closed; one closed as completed is reopened if a later run
    shows the failure. An issue is closed when all of its jobs have run and pass.

    \b
    conformance history add && conformance notify --github owner/repo          print the changes
    conformance notify --github owner/repo --yes --url https://owner.example/site
    """  # noqa: D301 - \b is click's own mark
    options = NotifyOptions(**given)
    if json_file is not None:
        check_writable("--json", json_file)
    notification = notify(load_context(), options)
    to_stderr = json_file is not None and str(json_file) == "-"
    for line in notification_lines(notification):
        click.echo(line, err=to_stderr)
    if json_file is not None:
        write_file("--json", json_file, readable_json(notification_data(notification)))
    problems = [one.problem for one in notification.done if one.problem]
    for problem in problems:
        print_note(problem)
    if notification.stopped is not None:
        raise notification.stopped
    return ExitCode.USAGE if problems else ExitCode.OK
