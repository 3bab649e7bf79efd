"""The plan of a run: its jobs in cells, and its shards, which are the same on every runner."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from packaging.version import Version

from conformance.app.case_choice import choose_cases
from conformance.app.durations import learn_durations, load_durations
from conformance.app.output_files import print_note
from conformance.app.session import Session
from conformance.cells.nightly import parse_night
from conformance.cells.releases import is_nightly
from conformance.engine.plan import Plan, list_possible_jobs, make_plan
from conformance.engine.shards import OPEN, split_into_shards
from conformance.errors import NothingSelectedError, UsageError
from conformance.wording import plural

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence
    from pathlib import Path

    from conformance.app.context import ProjectContext
    from conformance.app.run_request import RunRequest
    from conformance.cells.cell import Cell
    from conformance.engine.durations import Durations
    from conformance.engine.job import Job
    from conformance.engine.shards import Shard
    from conformance.engine.workers.preparation import Preparation
    from conformance.model.case import Case
    from conformance.model.run import Exclusion
    from conformance.report.shards import Labels


UNLIMITED = 10**6
"""Number of shards that no run has; more digits are a mistake."""


def split_plan(
    plan: Plan, possible: Sequence[Job], count: int, durations: Durations
) -> list[Shard]:
    """Return the shards of a plan.

    They are split from the possible jobs, which are the same on every runner. If one runner lacks a
    lock or a Python, no job moves to another shard.

    Args:
        plan: The whole plan.
        possible: Jobs that are possible on any host, see `list_possible_jobs`.
        count: Number of shards.
        durations: Durations of jobs, by which shards take about the same time.
    """
    planned = {job.id: job for job in plan.jobs}
    parts = split_into_shards(possible, count, durations.estimate)
    for part in parts:
        part.jobs = [planned[job.id] for job in part.jobs if job.id in planned]
        opened = len({job.planned.cell.id for job in part.jobs})
        # Estimated again, because jobs that this host cannot run were removed.
        part.seconds = sum(map(durations.estimate, part.jobs)) + OPEN * opened
    return parts


def select_shard(plan: Plan, possible: Sequence[Job], shard: str, durations: Durations) -> Plan:
    """Return the part of a plan that a shard runs.

    Args:
        plan: The whole plan.
        possible: Jobs that are possible on any host, see `list_possible_jobs`.
        shard: `I/N`, the I-th of N shards, from 1.
        durations: Durations of jobs, by which shards take about the same time.

    Returns:
        Adjacent jobs of the plan; the shards of all I, in order, are the whole plan.

    Raises:
        UsageError: If the shard is not `I/N` with I in 1 to N.
        NothingSelectedError: If the shard has no jobs.
    """
    number, _, count = shard.partition("/")
    if not (number.isdigit() and count.isdigit() and 1 <= int(number) <= int(count) < UNLIMITED):
        raise UsageError(f"--shard {shard}: expected I/N with 1 <= I <= N, e.g. 1/4")
    # The exclusions of an undivided run are complete, also those of cells without any job.
    if count == "1":
        return plan
    own = {
        job.id
        for job in _get_shard_jobs(
            split_into_shards(possible, int(count), durations.estimate), int(number)
        )
    }
    jobs = tuple(job for job in plan.jobs if job.id in own)
    if not jobs:
        raise NothingSelectedError(f"shard {shard} of {plural(len(plan.jobs), 'job')} has none")
    cells = {job.planned.cell.id for job in jobs}
    return Plan(
        jobs=jobs,
        # The first shard has every exclusion, so that none is lost that belongs to no shard.
        exclusions=tuple(one for one in plan.exclusions if number == "1" or _is_in_shard(one, own)),
        cells=tuple(planned for planned in plan.cells if planned.cell.id in cells),
    )


def _get_shard_jobs(parts: Sequence[Shard], number: int) -> Sequence[Job]:
    """Return the jobs of a shard, counted from 1; none if there are fewer shards."""
    return parts[number - 1].jobs if number <= len(parts) else ()


def _is_in_shard(exclusion: Exclusion, own: Collection[tuple[str, str]]) -> bool:
    """Return whether an excluded job would belong to a shard: only this host may lack its cell."""
    if exclusion.case:
        return (exclusion.case, exclusion.cell) in own
    return any(cell == exclusion.cell for _, cell in own)


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
        cases: Cases to run.
        cells: Cells to run them in.
        wanted: Requirements in addition to the packages of the cells.
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
    # Learned first, so that the same command also splits by the new durations.
    durations = learn_durations(context, runs) if runs else load_durations(context)
    cells, left_out = context.select_cells(request.matrix, request.cell)
    cases, _ = choose_cases(context, request)
    plan, preparation = plan_jobs(Session(context=context), cases, cells, request.wanted, left_out)
    for planned in preparation.cells:
        # A note, not an error: another runner may have what this host lacks.
        if planned.failure:
            print_note(f"{planned.cell.id}: {planned.failure}")
    check_any_job(plan)
    shards = split_plan(plan, list_possible_jobs(cases, cells), count, durations)
    # Runners start later, perhaps after the next nightly: the arguments name the day of this plan.
    return SplitRun(shards, plan.exclusions, request.render_arguments(find_newest_night(cells)))


def find_newest_night(cells: Iterable[Cell]) -> str:
    """Return the day of the newest nightly of some cells, empty if there is none."""
    releases = [cell.release for cell in cells if is_nightly(cell.release)]
    days = (parse_night(Version(release)) for release in releases)
    return max((day.isoformat() for day in days if day is not None), default="")


def parse_labels(given: Iterable[str]) -> Labels:
    """Return the labels of runners, by the accelerator that they must have; empty for none.

    Args:
        given: Labels that replace the default labels, each `KIND=LABEL[,LABEL]`.

    Raises:
        UsageError: If one of them is malformed, or names another kind of runner.
    """
    labels = dict(RUNNERS)
    for text in given:
        kind, _, label = text.partition("=")
        # The empty kind is the internal name of runners without an accelerator, not one to type.
        kind = "" if kind == ANY else kind or ANY
        names = [name.strip() for name in label.split(",")]
        if kind not in labels or not all(names):
            raise UsageError(
                f"--runner {text}: expected KIND=LABEL, of any, gpu or tpu, "
                "e.g. gpu=self-hosted,h100"
            )
        # `runs-on` of GitHub accepts a label or a list; one label stays readable as a text.
        labels[kind] = names if len(names) > 1 else names[0]
    return labels
