"""Options of commands whose target may be a script, a test or a command line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from conformance.app.context import TIMEOUT
from conformance.cli.options import no_downloads_option

if TYPE_CHECKING:
    from collections.abc import Callable


def program_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add what is said of a script, a test or a command: `timeout`, `wanted` and `is_command`.

    Args:
        command: The command whose target may be one.
    """
    options = (
        click.option(
            "--timeout", type=click.FloatRange(0.1), default=TIMEOUT, show_default=True,
            metavar="SECONDS", help="Of a script, test or command.",
        ),
        click.option(
            "--with", "wanted", multiple=True, metavar="PACKAGE",
            help="What it needs beside the cells' own packages: a requirement, a wheel, or "
            "./FOLDER of a package; repeatable.",
        ),
        click.option("--command", "is_command", is_flag=True, help="TARGET is a command line."),
        no_downloads_option,
    )  # fmt: skip
    for option in reversed(options):
        command = option(command)
    return command
