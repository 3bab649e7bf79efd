"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from conformance.app.context import HISTORY_STORE, count_usable_cores
from conformance.cells.interpreters import DOWNLOADS
from conformance.cli.words import CELLS, MATRICES
from conformance.engine.workers.environment import set_variable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Command = Callable[..., Any]
    Decorator = Callable[[Command], Command]

MOST_JOBS: Final = 256


class RenamedOption(click.Option):
    """An option that also accepts its earlier spellings, which the help does not show.

    Args:
        old: The earlier spellings.
    """

    def __init__(self, *arguments: Any, old: Sequence[str] = (), **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.old = tuple(old)

    def add_to_parser(self, parser: Any, ctx: click.Context) -> None:
        """Add the option under all its spellings."""
        # The parser reads `opts`, and so do the help and errors, which show only new spellings.
        shown = self.opts
        self.opts = [*shown, *self.old]
        try:
            super().add_to_parser(parser, ctx)
        finally:
            self.opts = shown


class HiddenArgument(click.Argument):
    """An argument of an earlier release, accepted for scripts and not shown in the usage."""

    def get_usage_pieces(self, ctx: click.Context) -> list[str]:
        """Return no piece of the usage line."""
        return []


def cells_options(command: Command) -> Command:
    """Add the options `--matrix` and `--cell` of commands about the cells of a run."""
    matrix = click.option(
        "--matrix", metavar="NAME|FILE", type=MATRICES, help="Cells to run in.  [default: smoke]"
    )
    cell = click.option(
        "--cell", multiple=True, metavar="SELECTOR", type=CELLS,
        help="A cell id, release, specifier, latest, latest-N, nightly or path:PYTHON, optionally "
        "with @PLATFORM; repeatable. Filters --matrix. A path:PYTHON cell is added to it.",
    )  # fmt: skip
    return matrix(cell(no_downloads_option(command)))


all_option = click.option(
    "--all", "everything", is_flag=True,
    help="Select all cases instead of the sample of the smoke run.",
)  # fmt: skip


def variable_option(spelling: str, variable: str, **settings: Any) -> Decorator:
    """Return an option whose value is a variable of the environment until the command ends."""

    def assign(context: click.Context, _: click.Parameter, value: str | None) -> None:
        # click also parses to complete a word: nothing may be changed then.
        if value is not None and not context.resilient_parsing:
            context.with_resource(set_variable(variable, value))

    return click.option(spelling, expose_value=False, callback=assign, **settings)


no_downloads_option = variable_option(
    "--no-python-downloads", DOWNLOADS, flag_value="0",
    help=f"Do not let uv download a missing Python (also {DOWNLOADS}=0).",
)  # fmt: skip
night_option = click.option(
    "--night", metavar="DAY", default="",
    help="Ignore nightlies after DAY, e.g. 2025-11-20; all runners of a run use the same.",
)  # fmt: skip
fresh_option = click.option("--fresh", is_flag=True, help="Ignore cached results.")
with_option = click.option(
    "--with", "wanted", multiple=True, metavar="PACKAGE",
    help="Install an additional requirement, wheel, or ./FOLDER of a package; repeatable.",
)  # fmt: skip
store_option = click.option(
    "--store", metavar="PATH|URL", envvar="CONFORMANCE_STORE",
    help="File, or postgresql://USER:PASSWORD@HOST/DATABASE.  "
    f"[default: {HISTORY_STORE} of the project, or CONFORMANCE_STORE]",
)  # fmt: skip


def run_option(text: str = "Directory or id of the run.  [default: the newest]") -> Decorator:
    """Return the option `--run` of commands about a recorded run, with a text as its help."""
    return click.option("--run", metavar="RUN", help=text)


def run_folder_option(command: Command) -> Command:
    """Add the option `--run` of commands that write a run; its value is called `run_dir`."""
    return click.option(
        "--run", "run_dir", cls=RenamedOption, old=["--run-dir"], metavar="DIR",
        type=click.Path(path_type=Path, file_okay=False),
        help="Directory of the run.  [default: a new one in reports/runs]",
    )(command)  # fmt: skip


def recorded_options(command: Command) -> Command:
    """Add the options `--run` and `--cell` of commands about records of a run."""
    cell = click.option("--cell", multiple=True, metavar="ID", help="Only these cells of the run.")
    return run_option()(cell(command))


def jobs_option(text: str = "Number of parallel jobs.") -> Decorator:
    """Return the option `--jobs`, with a text as its help."""
    return click.option(
        "--jobs", "-j", type=click.IntRange(1, MOST_JOBS), default=count_usable_cores,
        show_default="one per core", help=text,
    )  # fmt: skip


def timeout_option(
    text: str, old: str = "", *, least: float = 0.1, default: float | None = None
) -> Decorator:
    """Return the option `--timeout`, in seconds.

    Args:
        text: The help.
        old: An earlier spelling.
        least: The smallest value.
        default: The default, None for no limit.
    """
    return click.option(
        "--timeout", cls=RenamedOption, old=[old] if old else [], metavar="SECONDS",
        type=click.FloatRange(least), default=default, show_default=default is not None, help=text,
    )  # fmt: skip
