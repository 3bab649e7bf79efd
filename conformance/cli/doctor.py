"""`conformance doctor`: check this machine for everything that a run needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from rich.text import Text

from conformance.app.context import load_context
from conformance.app.host_checks import examine_host
from conformance.cli.cache import show_cache
from conformance.cli.output import json_option
from conformance.model.outcome import ExitCode

if TYPE_CHECKING:
    from conformance.cli.output import Output

_MARKS = {
    "ok": ("ok    ", "green"),
    "absent": ("absent", "yellow"),
    "wrong": ("wrong ", "bold red"),
}


@click.command("doctor")
# The earlier spelling of `cache show`.
@click.option("--disk", is_flag=True, hidden=True)
@json_option("the findings")
def command(*, disk: bool, output: Output) -> int:
    """Check that this machine can run the matrix.

    Checks interpreters, accelerators, uv, the cache folder and its disk, cases and matrices. A
    missing Python that only some cells need is reported as absent; uv downloads it when they run.
    The exit status is 4 if a check fails.

    conformance doctor
    conformance doctor --json doctor.json
    """
    if disk:
        return show_cache(output)
    findings = list(examine_host(load_context()))
    lines = (
        Text(*_MARKS[one.status]).append(f" {one.what}: {one.said}", "default") for one in findings
    )
    output.show(findings, lines)
    # An absent Python fails no host: uv downloads it when a cell needs it.
    wrong = any(finding.status == "wrong" for finding in findings)
    return ExitCode.INFRA if wrong else ExitCode.OK
