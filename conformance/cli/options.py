"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from conformance.app.context import HISTORY_STORE, default_jobs
from conformance.cells.interpreters import DOWNLOADS, forbid_downloads
from conformance.cli.words import CELLS, MATRICES

if TYPE_CHECKING:
    from collections.abc import Callable

    Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


def json_option(what: str) -> Decorator:
    """Return the option `--json`, whose value is called `json_file`.

    Args:
        what: What is written.
    """
    return click.option(
        "--json", "json_file", type=click.Path(path_type=Path, allow_dash=True), metavar="FILE",
        help=f"Write {what} as JSON; - is standard output.",
    )  # fmt: skip


def cells_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options `--matrix` and `--cell` of commands about the cells of a run.

    Args:
        command: The command.
    """
    matrix = click.option(
        "--matrix", metavar="NAME|FILE", type=MATRICES, help="Cells to run in.  [default: smoke]"
    )
    cell = click.option(
        "--cell", multiple=True, metavar="SELECTOR", type=CELLS,
        help="A cell id, release, specifier, latest, latest-N, nightly or path:PYTHON, optionally "
        "with @PLATFORM; repeatable. Filters --matrix. A path:PYTHON cell is added to it.",
    )  # fmt: skip
    return matrix(cell(no_downloads_option(command)))


def all_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the option `--all` of commands about the cases of a run; its value is `everything`.

    Args:
        command: The command.
    """
    return click.option(
        "--all", "everything", is_flag=True,
        help="Select all cases instead of the sample of the smoke run.",
    )(command)  # fmt: skip


def no_downloads_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the option `--no-python-downloads` of commands that set up cells.

    Args:
        command: The command.
    """
    return click.option(
        "--no-python-downloads", is_flag=True, expose_value=False, callback=_forbid_downloads,
        help=f"Do not let uv download a missing Python (also {DOWNLOADS}=0).",
    )(command)  # fmt: skip


def _forbid_downloads(context: click.Context, _: click.Parameter, value: bool) -> None:
    """Forbid downloads until the command ends."""
    if value and not context.resilient_parsing:
        context.with_resource(forbid_downloads())


def night_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the option `--night` of commands about the cells of a run.

    Args:
        command: The command.
    """
    return click.option(
        "--night", metavar="DAY", default="",
        help="Ignore nightlies after DAY, e.g. 2025-11-20; all runners of a run use the same.",
    )(command)  # fmt: skip


def recorded_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options `--run`, whose value is called `run_dir`, and `--cell` of recorded runs.

    Args:
        command: The command.
    """
    run = click.option(
        "--run", "run_dir", type=click.Path(path_type=Path, exists=True, file_okay=False),
        help="Run directory; the newest by default.",
    )  # fmt: skip
    cell = click.option("--cell", multiple=True, metavar="ID", help="Only these cells of the run.")
    return run(cell(command))


def site_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the option `--report` of commands that make a run, whose value is called `site`.

    Args:
        command: The command.
    """
    return click.option(
        "--report/--no-report", "site", default=None,
        help="Make the pages of the run, like `conformance report`.  [default: in a terminal]",
    )(command)  # fmt: skip


def jobs_option() -> Decorator:
    """Return the option `--jobs` of commands that try one thing in several cells."""
    return click.option(
        "--jobs", "-j", type=click.IntRange(1, 64), default=default_jobs,
        show_default="one per core", help="Number of parallel trials.",
    )  # fmt: skip


def with_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the option `--with` of additional packages of cells; its value is called `wanted`.

    Args:
        command: The command.
    """
    return click.option(
        "--with", "wanted", multiple=True, metavar="PACKAGE",
        help="Install an additional requirement, wheel, or ./FOLDER of a package; repeatable.",
    )(command)  # fmt: skip


def store_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the option `--store`.

    Args:
        command: The command that has it.
    """
    return click.option(
        "--store", metavar="PATH|URL", envvar="CONFORMANCE_STORE",
        help="File, or postgresql://USER:PASSWORD@HOST/DATABASE.  "
        f"[default: {HISTORY_STORE} of the project, or CONFORMANCE_STORE]",
    )(command)  # fmt: skip
