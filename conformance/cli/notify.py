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
from conformance.notify.deciding import When


@click.command("notify")
@click.argument(
    "run", required=False, type=click.Path(path_type=Path, exists=True, file_okay=False)
)
@click.option("--github", "repository", metavar="OWNER/REPO", help="Where the issues are.")
@click.option("--yes", is_flag=True, help="Do it; otherwise it is only said what would be done.")
@click.option(
    "--when", type=click.Choice([str(one) for one in When]), default=str(When.CONFIRMED),
    show_default=True, help="What opens an issue: what is confirmed, or also what is new.",
)  # fmt: skip
@click.option(
    "--limit", type=click.IntRange(0), default=10, show_default=True, metavar="N",
    help="Issues to open at most; the others are named.",
)  # fmt: skip
@click.option("--label", default="conformance", show_default=True, help="Label of the issues.")
@click.option("--url", default="", metavar="URL", help="Where the site is, to link to.")
@click.option(
    "--api", metavar="URL", envvar="GITHUB_API_URL", default="https://api.github.com",
    show_default=True, help="Address of the API, of GitHub Enterprise say; or GITHUB_API_URL.",
)  # fmt: skip
@store_option
@json_option("what is done")
def command(*, json_file: Path | None, **given: Any) -> int:
    """Open, update and close an issue for each root cause of a run.

    RUN is the directory of a run that is in the store; the newest by default. Without --yes
    nothing is done, and no token is needed for a public repository; with it GITHUB_TOKEN or
    GH_TOKEN must be one that may write issues. Without --github it is told from the store alone.

    What is flaky, or a fault of the host, opens no issue. Only the part of a text between our
    marks is ever written again. An issue that was closed as not planned stays closed; one closed
    as completed is opened again if a later run shows it. It is closed when all of its jobs have
    run and are fine.

    \b
    conformance history add && conformance notify --github owner/repo          what would be done
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
