"""The output of a command: lines for people, and the JSON of `--json`."""

from __future__ import annotations

import functools
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
from rich.console import Console
from rich.text import Text

from conformance.app.output_files import check_writable, write_file
from conformance.files import readable_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

STANDARD_OUTPUT: Final = "-"
"""The file name that means standard output."""
STATUS_INTERVAL: Final = 2.0
"""Seconds between two status lines where there is no terminal."""


def open_console(*, stderr: bool = False) -> Console:
    """Return a console that prints long lines unwrapped, because `grep` reads whole lines.

    Nothing in a text is markup or an emoji, so `family/name[param]` and `:name:` stay.

    Args:
        stderr: Whether to print on standard error.
    """
    return Console(stderr=stderr, highlight=False, soft_wrap=True, markup=False, emoji=False)


class Output:
    """The lines and the JSON that a command writes.

    With `--json -`, lines go to standard error: standard output then holds one JSON document.

    Args:
        json_file: The file of `--json`, None without the option.

    Attributes:
        json_file: The file.
        console: Prints lines.
        prints_json: Whether the JSON goes to standard output.
    """

    def __init__(self, json_file: Path | None) -> None:
        self.json_file = json_file
        self.prints_json = str(json_file) == STANDARD_OUTPUT
        self.console = open_console(stderr=self.prints_json)

    def print(self, *lines: str | Text) -> None:
        """Print lines, each unwrapped."""
        for line in lines:
            if isinstance(line, Text) and not self.console.is_terminal:
                # Nothing is styled there, and rendering 4,000 lines takes a tenth of a second.
                self.console.file.write(f"{line.plain}\n")
            else:
                # Line by line, because a console would join several texts with spaces.
                self.console.print(line)

    def write_json(self, data: Any) -> None:
        """Write the file of `--json`, if the option is given.

        Args:
            data: The result of the command.
        """
        if self.json_file is not None:
            write_file("--json", self.json_file, readable_json(data))

    def show(self, data: Any, lines: Iterable[str | Text]) -> None:
        """Write the result of a query as JSON, and print it unless the JSON is printed.

        Args:
            data: The result as JSON has it.
            lines: The result in lines.
        """
        self.write_json(data)
        if not self.prints_json:
            self.print(*lines)


def json_option(content: str) -> Decorator:
    """Return the option `--json`; the command receives an `Output` called `output`.

    Without a file name `--json` is `--json -`: it was a flag of some earlier commands.

    Args:
        content: Content of the file, for the help.
    """
    option = click.option(
        "--json", "json_file", type=click.Path(path_type=Path, allow_dash=True), metavar="FILE",
        is_flag=False, flag_value=STANDARD_OUTPUT,
        help=f"Write {content} as JSON; - is standard output.",
    )  # fmt: skip

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @option
        @functools.wraps(command)
        def call(*, json_file: Path | None, **values: Any) -> Any:
            if json_file is not None:
                # Checked first, because a run may take hours.
                check_writable("--json", json_file)
            return command(output=Output(json_file), **values)

        return call

    return decorate


@contextmanager
def live_status(console: Console) -> Iterator[Callable[[str], None]]:
    """Show the current step of a command until the block ends.

    Args:
        console: Shows a spinner in a terminal, and a line every few seconds elsewhere.

    Yields:
        A function to call with a line for each step.
    """
    if console.is_terminal:
        # An ASCII spinner: others need characters that a terminal may lack.
        with console.status("", spinner="line") as status:
            yield status.update
        return
    due = 0.0

    def print_line(text: str) -> None:
        nonlocal due
        # A log needs signs of life, not each of hundreds of trials.
        if time.monotonic() >= due:
            console.print(text)
            due = time.monotonic() + STATUS_INTERVAL

    yield print_line
