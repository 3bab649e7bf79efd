"""`conformance history`: the database of runs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import click

from conformance.app.context import load_context
from conformance.app.history import (
    add_runs,
    find_spans,
    make_case_json,
    make_regressions_json,
    open_store,
    render_added_runs,
    render_case,
    render_regressions,
    render_removed_runs,
    render_runs,
)
from conformance.app.output_files import print_note
from conformance.cli.options import run_option, store_option
from conformance.cli.output import json_option
from conformance.cli.words import CASES
from conformance.errors import UsageError
from conformance.model.outcome import ExitCode

if TYPE_CHECKING:
    from conformance.cli.output import Output


class HistoryGroup(click.Group):
    """The subcommands; a case id in place of a subcommand is an argument of `show`."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the subcommand of arguments: `show` if they begin with `family/name`."""
        if "/" in args[0] and args[0] not in self.commands:
            args = ["show", *args]
        return super().resolve_command(ctx, args)


@click.group("history", cls=HistoryGroup)
def command() -> None:
    """Store the results of runs in a database, and show what changed when.

    Runs are ordered by their addition. A regression is a group of jobs of a case that are
    unexpected for the same reason: new (seen once), confirmed (seen twice), known (with an issue),
    fixed, or reopened.

    conformance history add reports/runs                              all runs of a folder
    conformance history regressions                                   open regressions
    conformance history shard_map_while/fixed_point                   a case, run by run
    conformance history link 3f2a jax-ml/jax#12345
    """


@command.command("add", short_help="Add runs.")
@click.argument(
    "folders", metavar="[DIR]...", nargs=-1,
    type=click.Path(path_type=Path, exists=True, file_okay=False),
)  # fmt: skip
@run_option()
@store_option
@json_option("the added runs")
def add(*, folders: tuple[Path, ...], run: str | None, store: str | None, output: Output) -> int:
    """Add finished runs, each once; merge the shards of a run first.

    DIR is a folder of runs, or a run directory; the newest run by default.
    """
    context = load_context()
    if run is not None or not folders:
        folders = (*folders, context.runs.open(run).path)
    added = add_runs(context, store, folders)
    data = [{"run": name, "number": number} for name, number in added.numbers]
    output.show({"runs": data, "problems": added.problems}, render_added_runs(added))
    for problem in added.problems:
        print_note(problem)
    return ExitCode.USAGE if added.problems else ExitCode.OK


@command.command("runs", short_help="List the runs.")
@store_option
@json_option("the runs")
def runs(*, store: str | None, output: Output) -> int:
    """List the runs, in the order they were added."""
    found = open_store(load_context(), store).load_runs()
    output.show(found, render_runs(found))
    return ExitCode.OK


@command.command("show", short_help="Show a case, run by run.")
@click.argument("case", type=CASES)
@store_option
@json_option("the results of the case")
def show(*, case: str, store: str | None, output: Output) -> int:
    """Show the results of a case in every run, by cell.

    Nightly cells have one name for all dates; `conformance history runs --json -` has the release.
    """
    spans = find_spans(open_store(load_context(), store), case)
    output.show(make_case_json(case, spans), render_case(spans))
    return ExitCode.OK


@command.command("regressions", short_help="List regressions by root cause.")
@click.option("--all", "every", is_flag=True, help="Include fixed regressions.")
@store_option
@json_option("the regressions, with the events of all runs,")
def regressions(*, every: bool, store: str | None, output: Output) -> int:
    """List regressions by root cause: new, confirmed, known or reopened, with their first run."""
    found, events = open_store(load_context(), store).load_regressions()
    shown = [regression for regression in found if every or regression.fixed_in is None]
    output.show(make_regressions_json(shown, events), render_regressions(shown))
    return ExitCode.OK


@command.command("link", short_help="Link an issue to a regression.")
@click.argument("regression")
@click.argument("issue", required=False)
@click.option("--remove", is_flag=True, help="Remove the link.")
@store_option
@json_option("the regression")
def link(
    *, regression: str, issue: str | None, remove: bool, store: str | None, output: Output
) -> int:
    """Link ISSUE, owner/repository#number, to the regression with an id prefix."""
    if remove is (issue is not None):
        raise UsageError("expected either an issue or --remove")
    linked = open_store(load_context(), store).link(regression, issue or "")
    output.show(make_regressions_json([linked], ()), render_regressions([linked]))
    return ExitCode.OK


@command.command("prune", short_help="Remove old runs.")
@click.option(
    "--keep-days", type=click.IntRange(0, 36500), required=True, metavar="N",
    help="Keep the runs of the last N days, and the newest run.",
)  # fmt: skip
@store_option
@json_option("the number of removed runs, jobs and changes")
def prune(*, keep_days: int, store: str | None, output: Output) -> int:
    """Remove old runs, and jobs that no remaining run has; keep the state that runs begin with."""
    pruned = open_store(load_context(), store).prune(datetime.now(UTC) - timedelta(days=keep_days))
    output.show(pruned, [render_removed_runs(pruned)])
    return ExitCode.OK
