"""Options of the executor: this host, or the workers of a Dask cluster."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from conformance.app.cluster_choice import choose_cluster

if TYPE_CHECKING:
    from collections.abc import Callable

    Command = Callable[..., Any]


def cluster_options(command: Command) -> Command:
    """Add the options of the executor, as one value called `cluster`: None for this host."""

    @wraps(command)
    def call(*, executor: str | None, scheduler: str, insecure: bool, **others: Any) -> Any:
        cluster = choose_cluster(executor, scheduler, insecure=insecure)
        return command(cluster=cluster, **others)

    choice = click.option(
        "--executor", type=click.Choice(["local", "dask"]),
        help="Run the jobs on this host, or on the workers of a Dask cluster.  [default: local]",
    )  # fmt: skip
    scheduler = click.option(
        "--scheduler", metavar="ADDRESS", default="",
        help="Dask scheduler, e.g. tls://HOST:8786; implies --executor dask.  [default: that of "
        "pyproject.toml or of Dask's configuration, else a cluster on this host]",
    )  # fmt: skip
    insecure = click.option(
        "--insecure", is_flag=True, help="Accept a scheduler without TLS on another host."
    )
    return choice(scheduler(insecure(call)))
