"""The command line: one module per subcommand."""

from __future__ import annotations

import sys

import click

from conformance import __version__
from conformance.cli import accept, doctor, list_cases, matrix, run
from conformance.errors import ConformanceError
from conformance.model.outcome import ExitCode


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="conformance")
def cli() -> None:
    """What a JAX version really does, before you ship on it.

    \b
    conformance run                          five families on four releases, judged
    conformance run --matrix releases        ... on every release since 0.4.30
    conformance run shard_map_while --cell '>=0.6,<0.7'
    conformance run path/to/your/cases       your own cases, in your own repository

    Exit status: 0 nothing unexpected, 1 regressions or gated changes, 2 usage, 3 nothing
    selected or nothing ran, 4 infrastructure only, 130 interrupted.
    """  # noqa: D301 - \b is click's own mark


for module in (run, list_cases, matrix, accept, doctor):
    cli.add_command(module.command)


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit status.

    Args:
        arguments: Arguments; those of the process by default.

    Returns:
        The exit status; errors of the user's are one line on stderr, faults keep their traceback.
    """
    try:
        result = cli.main(arguments, prog_name="conformance", standalone_mode=False)
    except click.exceptions.Abort:
        return ExitCode.INTERRUPTED
    except click.ClickException as error:
        error.show()
        return ExitCode.USAGE
    except ConformanceError as error:
        click.echo(f"conformance: {error}", err=True)
        return error.exit_code
    except KeyboardInterrupt:
        click.echo("conformance: interrupted", err=True)
        return ExitCode.INTERRUPTED
    return result if isinstance(result, int) else 0


if __name__ == "__main__":
    sys.exit(main())
