"""The subcommands in groups, each with its module and a summary in one line.

The groups are data, so that `conformance --help` answers without importing any of the modules.
"""

from __future__ import annotations

import importlib
import inspect
import os
import re
from typing import Final, NamedTuple

import click

from conformance.wording import did_you_mean


class CommandEntry(NamedTuple):
    """A subcommand.

    Attributes:
        module: Module whose `command` it is; imported only when the command is called.
        summary: The effect of the command, in one line.
    """

    module: str
    summary: str


GROUPS: Final[dict[str, dict[str, CommandEntry]]] = {
    "Run": {
        "run": CommandEntry("run", "Run cases in cells and report what is unexpected."),
        "list": CommandEntry("list_cases", "List cases without importing them."),
        "plan": CommandEntry("plan", "Show the jobs of a run, and split them across runners."),
        "merge": CommandEntry("merge", "Merge the shards of a run."),
        "suite": CommandEntry("suite", "Run a pytest suite in cells."),
    },
    "Look": {
        "report": CommandEntry("report", "Render runs as a site, Markdown, JUnit XML or JSON."),
        "diff": CommandEntry("diff", "Compare two IRs, cells or runs."),
        "history": CommandEntry("history", "Record runs over time and query them."),
        "matrix": CommandEntry("matrix", "Show matrices and cells; refresh releases and locks."),
    },
    "Upgrade": {
        "upgrade": CommandEntry("upgrade", "Show what breaks or changes between two releases."),
        "scan": CommandEntry("scan", "Show what an upgrade changes for code, without running it."),
        "ecosystem": CommandEntry("ecosystem", "Test libraries that build on JAX on its releases."),
        "solve": CommandEntry("solve", "Find versions of libraries that were tested together."),
    },
    "Reproduce": {
        "bisect": CommandEntry("bisect", "Find the release that changed the behavior of a target."),
        "blame": CommandEntry("blame", "Find the package that changed the behavior of a target."),
        "layers": CommandEntry("layers", "Find the layer: tracing, lowering, or XLA."),
        "passes": CommandEntry("passes", "Find the HLO pass or XLA flag that makes a difference."),
        "new": CommandEntry("new", "Create a case from a pasted script."),
        "shrink": CommandEntry("shrink", "Reduce a case or a script to what still fails."),
        "repro": CommandEntry("repro", "Write a one-file reproduction to send upstream."),
    },
    "Nightly": {
        "triage": CommandEntry("triage", "Find the release and package behind each failure."),
        "review": CommandEntry("review", "Decide on each change: golden, deviation or neither."),
        "accept": CommandEntry("accept", "Store the results of a run as goldens."),
        "notify": CommandEntry("notify", "Open, update and close an issue for each root cause."),
        "calibrate": CommandEntry("calibrate", "Detect flaky jobs on this host."),
        "bench": CommandEntry("bench", "Compare time and memory of cases between cells."),
        "fuzz": CommandEntry("fuzz", "Search for behaviour changes with generated programs."),
    },
    "Environment": {
        "cache": CommandEntry("cache", "Show the disk usage of the cache, and prune it."),
        "doctor": CommandEntry("doctor", "Check that this machine can run the matrix."),
    },
}
COMMANDS: Final[dict[str, CommandEntry]] = {
    name: CommandEntry(f"conformance.cli.{entry.module}", entry.summary)
    for group in GROUPS.values()
    for name, entry in group.items()
}
"""Every subcommand by name, in the order of the groups."""
COMPLETING: Final = "_CONFORMANCE_COMPLETE"
"""Variable that the completion script of a shell sets, see click."""
COMPLETION: Final = "conformance.cli.completion"
_EXAMPLE: Final = re.compile(r"^ *conformance ", re.MULTILINE)


def keep_examples(command: click.Command) -> click.Command:
    """Have the help of a command keep the line breaks of its examples, and return the command.

    Args:
        command: The command; a group with its subcommands.
    """
    # click keeps the lines of a paragraph that begins with a backspace.
    paragraphs = inspect.cleandoc(command.help or "").split("\n\n")
    command.help = "\n\n".join(
        f"\b\n{text}" if _EXAMPLE.search(text) and not text.startswith("\b") else text
        for text in paragraphs
    )
    for inner in command.commands.values() if isinstance(command, click.Group) else ():
        keep_examples(inner)
    return command


class Commands(click.Group):
    """The subcommands, in the order of their groups."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all subcommands."""
        return list(COMMANDS)

    def get_command(
        self,
        ctx: click.Context,
        cmd_name: str,
    ) -> click.Command | None:
        """Import a subcommand and return it, None for an unknown name."""
        if cmd_name not in COMMANDS:
            return None
        entry = COMMANDS[cmd_name]
        # A key that completes a word must not wait for the import of the command.
        if COMPLETING in os.environ:
            completed = importlib.import_module(COMPLETION).load_completion
            found: click.Command = completed(cmd_name, entry.module)
            return found
        command: click.Command = importlib.import_module(entry.module).command
        # Otherwise click shortens the docstring, and help and completion would show other words.
        command.short_help = entry.summary
        return keep_examples(command)

    def format_commands(
        self,
        ctx: click.Context,
        formatter: click.HelpFormatter,
    ) -> None:
        """Write the subcommands in their groups, without importing them."""
        width = max(map(len, COMMANDS))
        for group, entries in GROUPS.items():
            with formatter.section(group):
                formatter.write_dl(
                    [(name.ljust(width), entry.summary) for name, entry in entries.items()]
                )

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the subcommand; the error for an unknown name suggests the nearest."""
        name = args[0]
        # An unknown option is reported by click, which names the option.
        if name not in COMMANDS and not name.startswith("-"):
            ctx.fail(f"no command {name!r}{did_you_mean(name, COMMANDS)}")
        return super().resolve_command(ctx, args)
