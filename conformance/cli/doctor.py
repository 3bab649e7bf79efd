"""`conformance doctor`: is everything here that a run needs?"""

from __future__ import annotations

import click
from rich.text import Text

from conformance.app.cache_disk import cache_lines, measure_cache
from conformance.app.context import load_context
from conformance.app.host_checks import examine_host
from conformance.cli.console import print_result
from conformance.model.outcome import ExitCode

_MARKS = {
    "ok": ("ok    ", "green"),
    "absent": ("absent", "yellow"),
    "wrong": ("wrong ", "bold red"),
}


@click.command("doctor")
@click.option("--disk", is_flag=True, help="Show the disk usage of the cache instead.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(*, disk: bool, as_json: bool) -> int:
    """Check that this machine can run the matrix.

    Checks interpreters, accelerators, uv, the cache folder and its disk, cases and matrices. A
    missing Python that only some cells need is reported as absent; uv downloads it when they run.
    The exit status is 4 if a check fails.

    \b
    conformance doctor
    conformance doctor --disk     the size of each environment, and which are unused
    """  # noqa: D301 - \b is click's own mark
    context = load_context()
    if disk:
        data = measure_cache(context)
        print_result(data, cache_lines(data), as_json=as_json)
        return ExitCode.OK
    findings = list(examine_host(context))
    lines = (
        Text(*_MARKS[one.status]).append(f" {one.what}: {one.said}", "default") for one in findings
    )
    print_result(findings, lines, as_json=as_json)
    wrong = any(finding.status == "wrong" for finding in findings)
    return ExitCode.INFRA if wrong else ExitCode.OK
