"""Options of the executor: this host, or the workers of a Dask cluster."""

from __future__ import annotations

import importlib
from functools import wraps
from typing import TYPE_CHECKING, Any, Final

import click

from conformance.cli.options import jobs_option

if TYPE_CHECKING:
    from collections.abc import Callable

    Command = Callable[..., Any]

CLUSTER_CHOICE: Final = "conformance.app.cluster_choice"
"""Imported late: most runs are on this host."""

_executor_option = click.option(
    "--executor", type=click.Choice(["local", "dask"]),
    help="Run the jobs on this host, or on the workers of a Dask cluster.  [default: local]",
)  # fmt: skip
_scheduler_option = click.option(
    "--scheduler", metavar="ADDRESS", default="",
    help="Dask scheduler, e.g. tls://HOST:8786; implies --executor dask.  [default: that of "
    "pyproject.toml or of Dask's configuration, else a cluster on this host]",
)  # fmt: skip
_insecure_option = click.option(
    "--insecure", is_flag=True, help="Accept a scheduler without TLS on another host."
)


def executor_options(jobs: str = "Number of parallel jobs.") -> Callable[[Command], Command]:
    """Return the option `--jobs` and the options of the executor.

    The executor becomes one value called `cluster`, which is None for this host.

    Args:
        jobs: Help of `--jobs`.
    """

    def add(command: Command) -> Command:
        @wraps(command)
        def call(*, executor: str | None, scheduler: str, insecure: bool, **others: Any) -> Any:
            cluster = None
            if executor == "dask" or scheduler:
                choose = importlib.import_module(CLUSTER_CHOICE).choose_cluster
                cluster = choose(executor, scheduler, insecure=insecure)
            return command(cluster=cluster, **others)

        options = (jobs_option(jobs), _executor_option, _scheduler_option, _insecure_option)
        decorated: Command = call
        for option in reversed(options):
            decorated = option(decorated)
        return decorated

    return add
