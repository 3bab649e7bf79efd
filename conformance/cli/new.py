"""`conformance new`: a script that somebody pasted, as a case."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from conformance.app.context import load_context
from conformance.app.new_case import NewOptions, port_script, write_case
from conformance.app.output_files import check_writable, write_file
from conformance.cli.console import open_console
from conformance.cli.options import jobs_option, json_option
from conformance.cli.words import CELLS, FAMILIES
from conformance.files import readable_json
from conformance.model.outcome import ExitCode
from conformance.triage.new.telling import (
    ported_json,
    release_lines,
    summary_lines,
    todo_lines,
    undeclared_lines,
)

if TYPE_CHECKING:
    from rich.console import Console

    from conformance.triage.new.proposal import Ported


@click.command("new")
@click.argument("script")
@click.option(
    "--family",
    default="",
    metavar="FAMILY",
    type=FAMILIES,
    help="Where it goes.  [default: what fits]",
)
@click.option("--topic", default="", metavar="TOPIC", help="File of it.  [default: reported]")
@click.option("--name", default="", metavar="NAME", help="Its name.  [default: the script's]")
@click.option("--source", default="", metavar="OWNER/REPO#N", help="Where upstream talks of it.")
@click.option(
    "--cell", multiple=True, metavar="SELECTOR", type=CELLS,
    help="Releases to try first; repeatable.  [default: five of all, and what it names]",
)  # fmt: skip
@click.option("--good", default="", metavar="RELEASE", help="Where its value is right.")
@click.option(
    "--devices", type=click.IntRange(1), default=None, metavar="N", help="Devices it needs."
)
@click.option(
    "--timeout", type=click.FloatRange(0.1), default=60.0, show_default=True, metavar="SECONDS",
    help="That it may take.",
)  # fmt: skip
@click.option(
    "--cases", type=click.Path(path_type=Path, file_okay=False), metavar="DIR",
    help="Folder of the families.  [default: the project's]",
)  # fmt: skip
@click.option("--dry-run", is_flag=True, help="Print the case instead of writing it.")
@jobs_option()
@json_option("what was made")
def command(*, script: str, dry_run: bool, json_file: Path | None, **options: Any) -> int:
    """Make a case of a script that somebody pasted, with the deviations that were seen.

    SCRIPT is a file of Python, or of text with a fenced block of it, with or without prompts; -
    is standard input. It is run over a few releases, as it is and as a case; where they differ the
    first release of each change is found over all of them. What was seen is declared, for you to
    review.

    \b
    conformance new report.py
    conformance new issue.md --family shard_map_while --source jax-ml/jax#27664
    conformance new report.py --good 0.5.3          the value of that release is right
    conformance new report.py --cell '>=0.6'        try each of these, and none before
    conformance new - --name psum_of_nothing --dry-run < report.py

    Nothing is written until all of it was tried; what stands in a file stays as it is. Exit status:
    0 made, 1 made, but something is seen that it does not declare.
    """  # noqa: D301 - \b is click's own mark
    if json_file is not None:
        check_writable("--json", json_file)
    console = open_console(json_file)
    asked = NewOptions(dry_run=dry_run, **options)
    ported = port_script(load_context(), script, asked, console.print)
    _print(console, ported, dry_run=dry_run)
    if json_file is not None:
        write_file("--json", json_file, readable_json(ported_json(ported, written=not dry_run)))
    return ExitCode.UNEXPECTED if ported.made.undeclared else ExitCode.OK


def _print(console: Console, ported: Ported, *, dry_run: bool) -> None:
    """Print the case that was made; write it, unless it is only to be shown."""
    place, made = ported.order.place, ported.made
    for line in ("", *release_lines(ported), "", *summary_lines(ported)):
        console.print(line)
    if dry_run:
        console.print(f"\n{made.text}")
    else:
        write_case(ported)
        console.print(f"\nwrote {place.file}: {place.id}, a {made.draft.way.kind}")
    for line in todo_lines(ported):
        console.print(f"left to you: {line}")
    if dry_run:
        console.print("a dry run: these commands find the case once it is written")
    for line in undeclared_lines(ported):
        console.print(line)
