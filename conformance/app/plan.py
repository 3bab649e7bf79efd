"""The plan of a run: its jobs in cells that are looked up, and its split across runners."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from conformance.app.nightlies import newest_night
from conformance.app.notes import print_note
from conformance.app.session import Session
from conformance.app.shards import durations_of, learn_durations, parts_of
from conformance.engine.plan import list_possible_jobs, make_plan
from conformance.errors import NothingSelectedError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from conformance.app.context import ProjectContext
    from conformance.app.run_request import RunRequest
    from conformance.cells.cell import Cell
    from conformance.engine.plan import Plan
    from conformance.engine.preparation import Preparation
    from conformance.engine.shards import Shard
    from conformance.model.case import Case
    from conformance.model.run import Exclusion
    from conformance.report.shards import Labels

ANY: Final = "any"
"""The runners without an accelerator, in `--runner`."""
RUNNERS: Final[Labels] = {
    "": "ubuntu-latest",
    "gpu": ["self-hosted", "gpu"],
    "tpu": ["self-hosted", "tpu"],
}
"""Default labels of runners, by the accelerator that they must have."""
SHOWN: Final = 5
"""Reasons that the message about an empty plan names."""


class PlannedJobs(NamedTuple):
    """Jobs of cases in cells.

    Attributes:
        plan: The jobs, and every exclusion with its reason.
        preparation: The cells with their locks.
    """

    plan: Plan
    preparation: Preparation


def plan_jobs(
    session: Session,
    cases: Sequence[Case],
    cells: Iterable[Cell],
    wanted: Iterable[str],
    left_out: Iterable[Exclusion],
) -> PlannedJobs:
    """Look up cells, and plan the jobs of cases in them.

    Args:
        session: Looks up the cells.
        cases: The cases.
        cells: The cells.
        wanted: Requirements in addition to the cells' own packages.
        left_out: Exclusions of the matrix.
    """
    preparation = session.prepare(cells, wanted)
    plan = make_plan(cases, preparation.cells, (*left_out, *preparation.exclusions))
    return PlannedJobs(plan, preparation)


def check_any_job(plan: Plan) -> None:
    """Refuse a plan without jobs.

    Args:
        plan: The plan.

    Raises:
        NothingSelectedError: If it has no jobs.
    """
    if plan.jobs:
        return
    reasons = dict.fromkeys(
        f"{exclusion.case or 'every case'} on {exclusion.cell}: {exclusion.reason}"
        for exclusion in plan.exclusions
    )
    shown = list(reasons)[:SHOWN]
    more = f" (and {len(reasons) - len(shown)} more)" if len(reasons) > len(shown) else ""
    raise NothingSelectedError(
        f"nothing to run; {'; '.join(shown) or 'the matrix has no cells'}{more}"
    )


class SplitRun(NamedTuple):
    """A run that is split across runners.

    Attributes:
        shards: The shards, in order.
        exclusions: Cells and cases that are left out.
        arguments: Arguments of `conformance run` for the undivided run, for a shell.
    """

    shards: Sequence[Shard]
    exclusions: Sequence[Exclusion]
    arguments: str


def split_run(
    context: ProjectContext, request: RunRequest, count: int, runs: Sequence[Path]
) -> SplitRun:
    """Split a run into shards that take about the same time.

    Args:
        context: The project, with the nightlies that count.
        request: The request of the run.
        count: Number of shards.
        runs: Runs, or folders of them, to learn the durations of jobs from; may be empty.

    Raises:
        NothingSelectedError: If the run has no jobs.
    """
    durations = learn_durations(context, runs) if runs else durations_of(context)
    cells, left_out = context.cells(request.matrix, request.cell)
    cases, _ = context.cases_of_run(
        request.select, given=(request.matrix, request.cell), everything=request.everything
    )
    plan, preparation = plan_jobs(Session(context=context), cases, cells, request.wanted, left_out)
    for planned in preparation.cells:
        if planned.failure:  # another runner may have what this host lacks
            print_note(f"{planned.cell.id}: {planned.failure}")
    check_any_job(plan)
    shards = parts_of(plan, list_possible_jobs(cases, cells), count, durations)
    return SplitRun(shards, plan.exclusions, request.arguments(newest_night(cells)))


def parse_labels(given: Iterable[str]) -> Labels:
    """Return the labels of runners, by the accelerator that they must have; empty for none.

    Args:
        given: Labels that replace the default ones, each `KIND=LABEL[,LABEL]`.

    Raises:
        UsageError: If one of them is malformed, or names another kind of runner.
    """
    found = dict(RUNNERS)
    for text in given:
        kind, _, label = text.partition("=")
        kind = "" if kind == ANY else kind or ANY
        names = [name.strip() for name in label.split(",")]
        if kind not in found or not all(names):
            raise UsageError(
                f"--runner {text}: expected KIND=LABEL, of any, gpu or tpu, "
                "e.g. gpu=self-hosted,h100"
            )
        found[kind] = names if len(names) > 1 else names[0]
    return found
