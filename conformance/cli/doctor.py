"""`conformance doctor`: is everything here that a run needs?"""

from __future__ import annotations

import click
from rich.text import Text

from conformance.app.context import load_context
from conformance.app.host_check import examine
from conformance.cli.console import open_console
from conformance.cli.disk import show_disk
from conformance.files import readable_json
from conformance.model.outcome import ExitCode

_MARKS = {
    "ok": ("ok    ", "green"),
    "absent": ("absent", "yellow"),
    "wrong": ("wrong ", "bold red"),
}


@click.command("doctor")
@click.option("--disk", is_flag=True, help="Show what the cache takes of the disk instead.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(*, disk: bool, as_json: bool) -> int:
    """Check that this machine can run the matrix.

    Looks at the interpreters, the accelerators, uv, the cache folder and its disk, the cases and
    the matrices. A Python that only some cells of a matrix need, and that is not here, is absent:
    uv downloads it when they run, if it can. The exit status is 4 when something is wrong.

    \b
    conformance doctor
    conformance doctor --disk     what each environment takes, and what nothing wants any more
    """  # noqa: D301 - \b is click's own mark
    if disk:
        show_disk(load_context(), as_json=as_json)
        return ExitCode.OK
    findings = list(examine(load_context()))
    if as_json:
        click.echo(readable_json(findings))
    else:
        console = open_console()
        for finding in findings:
            mark = Text(*_MARKS[finding.status])
            console.print(mark.append(f" {finding.what}: {finding.said}", "default"))
    wrong = any(finding.status == "wrong" for finding in findings)
    return ExitCode.INFRA if wrong else ExitCode.OK
