"""The console that commands print on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click
from rich.console import Console

from conformance.files import readable_json

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from rich.text import Text

STANDARD_OUTPUT: Final = "-"
"""What `--json` is given to print the JSON on standard output."""


def open_console(json_file: Path | None = None, *, stderr: bool = False) -> Console:
    """Return a console that prints lines as they are, however long: `grep` reads whole lines.

    Nothing in a text is markup, so the brackets of `family/name[param]` stay.

    Args:
        json_file: Where the command writes JSON; on standard output, nothing else is printed there.
        stderr: Whether to print on standard error in any case.
    """
    stderr = stderr or str(json_file) == STANDARD_OUTPUT
    return Console(stderr=stderr, highlight=False, soft_wrap=True, markup=False)


def print_result(data: Any, lines: Iterable[Text], *, as_json: bool) -> None:
    """Print a result on standard output.

    Args:
        data: The result as JSON has it.
        lines: The result in lines.
        as_json: Whether to print the JSON.
    """
    if as_json:
        click.echo(readable_json(data))
        return
    console = open_console()
    for line in lines:
        console.print(line)
