"""`conformance history`: the store of runs, night after night."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from conformance.app.context import load_context
from conformance.app.history_data import case_data, regression_data
from conformance.app.history_lines import case_lines, pruned_line, regression_lines, run_lines
from conformance.app.history_store import add_runs, find_spans, open_store
from conformance.app.notes import print_note
from conformance.cli.options import store_option
from conformance.cli.words import CASES
from conformance.errors import UsageError
from conformance.files import readable_json
from conformance.model.outcome import ExitCode

if TYPE_CHECKING:
    from collections.abc import Iterable

as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


class HistoryGroup(click.Group):
    """The subcommands; a case in the place of one is shown."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the subcommand that arguments begin with: of `family/name`, `show`."""
        if "/" in args[0] and args[0] not in self.commands:
            args = ["show", *args]
        return super().resolve_command(ctx, args)


@click.group("history", cls=HistoryGroup)
def command() -> None:
    """Store the results of runs in a database, and show what changed when.

    Runs are ordered by their addition. A regression is a group of jobs of a case that are
    unexpected for the same reason: new (seen once), confirmed (seen twice), known (with an issue),
    fixed, or reopened.

    \b
    conformance history add reports/runs/20261121-030000-000ab12      after each nightly
    conformance history regressions                                   open regressions
    conformance history shard_map_while/fixed_point                   a case, run by run
    conformance history link 3f2a jax-ml/jax#12345                    link an issue
    conformance history prune --keep-days 365
    """  # noqa: D301 - \b is click's own mark


@command.command("add", short_help="Add runs.")
@click.argument(
    "folders", metavar="[DIR]...", nargs=-1,
    type=click.Path(path_type=Path, exists=True, file_okay=False),
)  # fmt: skip
@store_option
def add(*, folders: tuple[Path, ...], store: str | None) -> int:
    """Add finished runs; adding a run twice changes nothing.

    DIR is a run directory, or a folder of runs; the newest run by default. Merge the shards of a
    run with `conformance merge` first.
    """
    added = add_runs(load_context(), store, folders)
    for run, number in added.numbers:
        click.echo(f"{run}: {'is there already' if number is None else f'added as {number}'}")
    for problem in added.problems:
        print_note(problem)
    return ExitCode.USAGE if added.problems else ExitCode.OK


@command.command("runs", short_help="List the runs.")
@store_option
@as_json
def runs(*, store: str | None, as_json: bool) -> int:
    """List the runs, in the order they were added."""
    found = open_store(load_context(), store).runs()
    _print(found, run_lines(found), as_json=as_json)
    return ExitCode.OK


@command.command("show", short_help="Show a case, run by run.")
@click.argument("case", type=CASES)
@store_option
@as_json
def show(*, case: str, store: str | None, as_json: bool) -> int:
    """Show the results of a case in every run, by cell.

    Nightly cells have one name for all dates; `conformance history runs --json` has the release.
    """
    spans = find_spans(open_store(load_context(), store), case)
    _print(case_data(case, spans), case_lines(spans), as_json=as_json)
    return ExitCode.OK


@command.command("regressions", short_help="List regressions by root cause.")
@click.option("--all", "every", is_flag=True, help="Include fixed regressions.")
@store_option
@as_json
def regressions(*, every: bool, store: str | None, as_json: bool) -> int:
    """List regressions by root cause: new, confirmed, known or reopened, with their first run.

    --json includes the events of all runs.
    """
    found, events = open_store(load_context(), store).regressions()
    shown = [one for one in found if every or one.fixed_in is None]
    _print(regression_data(shown, events), regression_lines(shown), as_json=as_json)
    return ExitCode.OK


@command.command("link", short_help="Link an issue to a regression.")
@click.argument("regression")
@click.argument("issue", required=False)
@click.option("--remove", is_flag=True, help="Remove the link.")
@store_option
def link(*, regression: str, issue: str | None, remove: bool, store: str | None) -> int:
    """Link ISSUE, owner/repository#number, to the regression with an id prefix."""
    if remove is (issue is not None):
        raise UsageError("expected either an issue or --remove")
    linked = open_store(load_context(), store).link(regression, issue or "")
    click.echo("\n".join(regression_lines([linked])))
    return ExitCode.OK


@command.command("prune", short_help="Remove old runs.")
@click.option(
    "--keep-days", type=click.IntRange(0, 36500), required=True, metavar="N",
    help="Keep the runs of the last N days, and the newest run.",
)  # fmt: skip
@store_option
def prune(*, keep_days: int, store: str | None) -> int:
    """Remove old runs, and keep the state at the beginning of the remaining ones.

    Jobs that no remaining run has are removed.
    """
    before = datetime.now(UTC) - timedelta(days=keep_days)
    pruned = open_store(load_context(), store).prune(before)
    click.echo(pruned_line(pruned))
    return ExitCode.OK


def _print(data: Any, lines: Iterable[str], *, as_json: bool) -> None:
    click.echo(readable_json(data) if as_json else "\n".join(lines))
