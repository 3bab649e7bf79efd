"""`conformance notify`: open, update and close an issue for each root cause."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from conformance.app.context import load_context
from conformance.app.notification import (
    NotifyOptions,
    make_notification_json,
    notify,
    render_notification,
)
from conformance.app.output_files import print_note
from conformance.cli.options import HiddenArgument, run_option, store_option
from conformance.cli.output import json_option
from conformance.model.outcome import ExitCode
from conformance.notify.decisions import NotifyWhen

if TYPE_CHECKING:
    from conformance.cli.output import Output


@click.command("notify")
@click.argument("directory", cls=HiddenArgument, required=False)
@run_option("Directory or id of the run, which is in the database.  [default: the newest]")
@click.option("--github", "repository", metavar="OWNER/REPO", help="Repository of the issues.")
@click.option("--yes", is_flag=True, help="Apply the changes; the default only prints them.")
@click.option(
    "--when", type=click.Choice(list(map(str, NotifyWhen))), default=str(NotifyWhen.CONFIRMED),
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
@json_option("the actions")
def command(*, directory: str | None, run: str | None, output: Output, **options: Any) -> int:
    """Open, update and close an issue for each root cause of a run.

    Without --yes the command only prints the changes, and needs no token for a public repository.
    With --yes, GITHUB_TOKEN or GH_TOKEN must allow writing issues. Without --github, it uses the
    database alone.

    Flaky jobs and host faults open no issue. Only the marked part of an issue's text is updated.
    An issue closed as not planned stays closed; one closed as completed is reopened if a later run
    shows the failure. An issue is closed when all of its jobs have run and pass.

    conformance history add && conformance notify --github owner/repo          print the changes
    conformance notify --github owner/repo --yes --url https://owner.example/site
    """
    notification = notify(load_context(), NotifyOptions(run=run or directory, **options))
    output.print(*render_notification(notification))
    output.write_json(make_notification_json(notification))
    # An issue that GitHub refuses does not stop the others.
    problems = [result.problem for result in notification.done if result.problem]
    for problem in problems:
        print_note(problem)
    if notification.stopped is not None:
        # Raised last, because the actions before it are done and must be shown.
        raise notification.stopped
    return ExitCode.USAGE if problems else ExitCode.OK
