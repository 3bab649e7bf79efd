"""The command line: one module per subcommand."""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
import traceback
from typing import TYPE_CHECKING

import click

from conformance import __version__
from conformance.app.lifetime import lifetime
from conformance.cells.child_processes import CHILD_PROCESSES
from conformance.cli.commands import Commands, keep_examples
from conformance.cli.environment_block import erase_environment_block
from conformance.cli.guarded_output import guard_output
from conformance.engine.workers.environment import is_allowed
from conformance.errors import ConformanceError
from conformance.model.outcome import ExitCode

if TYPE_CHECKING:
    from collections.abc import Iterator


REPORT = (
    "conformance: internal error; this is a bug of jax-conformance and says nothing about JAX; "
    "please report it with the lines above and the command"
)


@click.group(
    cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.version_option(__version__, prog_name="conformance")
def cli() -> None:
    """Test what a JAX version really does, before you ship on it.

    conformance run                          a sample of every family, on four releases
    conformance run --all                    every case, on these releases
    conformance run --matrix releases        every case, on every release
    conformance run shard_map_while --cell '>=0.6,<0.7'
    conformance run path/to/your/cases       your own cases, in your own repository

    Exit status: 0 nothing unexpected, 1 regressions or gated changes, 2 usage, 3 nothing
    selected or nothing ran, 4 infrastructure only, 70 internal error, 130
    interrupted.
    """


keep_examples(cli)


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit status.

    Args:
        arguments: Arguments; those of the process by default.

    Returns:
        The exit status; errors of the user's are one line on stderr, faults keep their traceback.
    """
    # Not for a caller within another program, whose environment is not ours to erase.
    if arguments is None:
        erase_environment_block(is_allowed)
    # Around everything else, so that errors of click and tracebacks are masked, too.
    with guard_output():
        return _run(arguments)


def _run(arguments: list[str] | None) -> int:
    try:
        with _handle_signals(), lifetime():
            # Not standalone: click would exit the process, with other statuses.
            result = cli.main(arguments, prog_name="conformance", standalone_mode=False)
    # click raises Abort for a KeyboardInterrupt.
    except click.exceptions.Abort:
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


@contextlib.contextmanager
def _handle_signals() -> Iterator[None]:
    """Treat a request to end, from a job scheduler or a closing terminal, like Ctrl-C.

    Each signal also ends the child processes that other threads wait for.
    """

    def interrupt(*_: object) -> None:
        CHILD_PROCESSES.stop()
        raise KeyboardInterrupt

    replaced = {}
    # A handler of the caller stays, and so does the SIG_IGN that nohup sets for SIGHUP.
    usual = {signal.SIG_DFL, signal.default_int_handler}
    # Python sets handlers in the main thread only; a test or a notebook may call from another.
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) in usual:
                replaced[number] = signal.signal(number, interrupt)
    try:
        yield
    finally:
        for number, handler in replaced.items():
            signal.signal(number, handler)
        # Stopped for good, the next command of the same process could not start any.
        CHILD_PROCESSES.resume()


if __name__ == "__main__":
    sys.exit(main())
