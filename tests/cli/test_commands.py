"""The subcommands, and how `conformance --help` lists them."""

from __future__ import annotations

import importlib
import subprocess
import sys

import click
import pytest

from conformance.cli import cli
from conformance.cli.commands import COMMANDS, GROUPS


def test_help_lists_every_command_in_its_group() -> None:
    """Each with its summary."""
    text = cli.get_help(click.Context(cli))
    for group, entries in GROUPS.items():
        section = text.partition(f"\n{group}:\n")[2].partition("\n\n")[0]
        lines = [line.split(maxsplit=1) for line in section.splitlines()]
        assert lines == [[name, entry.summary] for name, entry in entries.items()]


def test_help_imports_no_command() -> None:
    """Importing the commands would take most of the start-up time."""
    code = (
        "import sys\nfrom conformance.cli import main\nmain(['--help'])\n"
        "from conformance.cli.commands import COMMANDS\n"
        "print([entry.module for entry in COMMANDS.values() if entry.module in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize("name", COMMANDS)
def test_command_name_and_summary_match_the_listing(name: str) -> None:
    """Shell completion shows the same summary."""
    assert importlib.import_module(COMMANDS[name].module).command.name == name
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    assert command.short_help == COMMANDS[name].summary
