"""Options that say what is measured of a target: a stage, a region, or a number it prints."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import click

from conformance.app.bisect import TIMED

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
