"""Options of the commands that compare a run with an earlier one."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from conformance.app.context import load_context
from conformance.app.since import SinceOptions
from conformance.engine.exit_policy import FailOn

if TYPE_CHECKING:
    from collections.abc import Callable


def since_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options `--since` and `--store`, as one value called `compared`, a `SinceOptions`.

    Args:
        command: The command.
    """

    @wraps(command)
    def called(*, since: str | None, store: str | None, **rest: Any) -> Any:
        folder = load_context().project.root / "reports" / "runs"
        compared = SinceOptions(since=since, store=store, folder=folder)
        compared.check()
        return command(compared=compared, **rest)

    since = click.option(
        "--since", metavar="RUN|none",
        help="Directory or id of the run to compare with.  [default: the last of the same matrix]",
    )  # fmt: skip
    store = click.option(
        "--store", metavar="PATH|URL", envvar="CONFORMANCE_STORE",
        help="Database of `conformance history`: the last run if its directory is gone, and linked "
        "issues.",
    )  # fmt: skip
    return since(store(called))


def fail_on_option(default: str | None) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return the option `--fail-on`.

    Args:
        default: Its default, None for the setting of the shards.
    """
    return click.option(
        "--fail-on", type=click.Choice([str(one) for one in FailOn]), default=default,
        show_default=default or "as the shards were run",
        help="Exit with 1 for any unexpected result, only for results that are new since the last "
        "run (with --store also for those without a linked issue), or never.",
    )  # fmt: skip
