"""The command line: one module per subcommand."""

from __future__ import annotations

import importlib
import os
import sys
import traceback

import click

from conformance import __version__
from conformance.app.command_scope import command_scope
from conformance.app.interruption import interrupt_on_end_signals
from conformance.cells.suggest import did_you_mean
from conformance.cli.commands import COMMANDS, GROUPS
from conformance.cli.environment_block import erase_environment_block
from conformance.cli.guarded_output import guarded_output
from conformance.engine.environment import is_allowed
from conformance.errors import ConformanceError
from conformance.model.outcome import ExitCode

COMPLETING = "_CONFORMANCE_COMPLETE"
"""Variable that a shell sets to complete a line."""
COMPLETION = "conformance.cli.completion"

REPORT = (
    "conformance: internal error; this is a bug of jax-conformance and says nothing about JAX; "
    "please report it with the lines above and the command"
)


class Commands(click.Group):
    """The subcommands, in the order a newcomer meets them."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Return the names of all subcommands."""
        return list(COMMANDS)

    def get_command(
        self,
        ctx: click.Context,  # noqa: ARG002 - click's signature
        cmd_name: str,
    ) -> click.Command | None:
        """Import a subcommand and return it, None when there is none of that name."""
        if cmd_name not in COMMANDS:
            return None
        entry = COMMANDS[cmd_name]
        if COMPLETING in os.environ:
            completed = importlib.import_module(COMPLETION).command_to_complete
            found: click.Command = completed(cmd_name, entry.module)
            return found
        command: click.Command = importlib.import_module(entry.module).command
        command.short_help = entry.summary
        return command

    def format_commands(
        self,
        ctx: click.Context,  # noqa: ARG002 - click's signature
        formatter: click.HelpFormatter,
    ) -> None:
        """Write the subcommands in their groups, without importing one."""
        width = max(map(len, COMMANDS))
        for group, entries in GROUPS.items():
            with formatter.section(group):
                formatter.write_dl(
                    [(name.ljust(width), entry.summary) for name, entry in entries.items()]
                )

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the subcommand; the error for an unknown one names the nearest."""
        name = args[0]
        if name not in COMMANDS and not name.startswith("-"):
            ctx.fail(f"no command {name!r}{did_you_mean(name, COMMANDS)}")
        return super().resolve_command(ctx, args)


@click.group(
    cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.version_option(__version__, prog_name="conformance")
def cli() -> None:
    """What a JAX version really does, before you ship on it.

    \b
    conformance run                          a sample of every family, on four releases
    conformance run --all                    every case, on these releases
    conformance run --matrix releases        every case, on every release
    conformance run shard_map_while --cell '>=0.6,<0.7'
    conformance run path/to/your/cases       your own cases, in your own repository

    Exit status: 0 nothing unexpected, 1 regressions or gated changes, 2 usage, 3 nothing
    selected or nothing ran, 4 infrastructure only, 70 internal error, 130
    interrupted.
    """  # noqa: D301 - \b is click's own mark


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit status.

    Args:
        arguments: Arguments; those of the process by default.

    Returns:
        The exit status; errors of the user's are one line on stderr, faults keep their traceback.
    """
    if arguments is None:  # this process is all ours
        erase_environment_block(is_allowed)
    with guarded_output():
        return _status(arguments)


def _status(arguments: list[str] | None) -> int:
    try:
        with interrupt_on_end_signals(), command_scope():
            result = cli.main(arguments, prog_name="conformance", standalone_mode=False)
    except click.exceptions.Abort:  # how click spells KeyboardInterrupt
        click.echo("conformance: interrupted", err=True)
        return ExitCode.INTERRUPTED
    except click.ClickException as error:
        error.show()
        return ExitCode.USAGE
    except ConformanceError as error:
        click.echo(f"conformance: {error}", err=True)
        return error.exit_code
    except Exception:  # noqa: BLE001 - a fault of ours must not read as a finding about JAX
        traceback.print_exc()
        click.echo(REPORT, err=True)
        return ExitCode.INTERNAL
    return result if isinstance(result, int) else 0


if __name__ == "__main__":
    sys.exit(main())
