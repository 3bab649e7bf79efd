"""The console that commands print on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rich.console import Console

if TYPE_CHECKING:
    from pathlib import Path

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
