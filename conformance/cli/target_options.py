"""Options of commands that search with a target: how it runs, and what is measured of it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import click

from conformance.app.bisect import TIMED
from conformance.app.context import TIMEOUT
from conformance.cli.options import no_downloads_option

if TYPE_CHECKING:
    from collections.abc import Callable


class Pattern(click.ParamType[re.Pattern[str]]):
    """A regular expression."""

    name = "regex"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> re.Pattern[str]:
        """Return the pattern, or say where it is broken."""
        try:
            return re.compile(value, re.MULTILINE)
        except re.error as error:
            self.fail(f"{value}: {error}; expected a regular expression", param, ctx)


def measure_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options to a command."""
    stage = click.option(
        "--stage", type=click.Choice(TIMED), default=None,
        help="Compare the time of this stage of a case; call is a warm call.",
    )  # fmt: skip
    region = click.option(
        "--region", default="", metavar="NAME",
        help="Compare the time of this region of a script: with conformance.timed(NAME).",
    )  # fmt: skip
    metric = click.option(
        "--metric", type=Pattern(), default=None, metavar="REGEX",
        help="Compare the last number that a program prints where this matches.",
    )  # fmt: skip
    return stage(region(metric(command)))


def program_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of scripts, tests and commands: `timeout`, `wanted` and `is_command`.

    Args:
        command: The command whose target may be one.
    """
    options = (
        click.option(
            "--timeout", type=click.FloatRange(0.1), default=TIMEOUT, show_default=True,
            metavar="SECONDS", help="Timeout of a script, test or command.",
        ),
        click.option(
            "--with", "wanted", multiple=True, metavar="PACKAGE",
            help="Install an additional requirement, wheel, or ./FOLDER of a package; repeatable.",
        ),
        click.option("--command", "is_command", is_flag=True, help="TARGET is a command line."),
        no_downloads_option,
    )  # fmt: skip
    for option in reversed(options):
        command = option(command)
    return command
