"""Shards: the parts of a plan, the same on every runner that has the same checkout."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from conformance.app.notes import print_note
from conformance.engine.plan import Plan
from conformance.engine.run_loader import find_runs, load_run
from conformance.engine.shards import (
    FILE_NAME,
    OPEN,
    Durations,
    decode_durations,
    split_into_shards,
    update_durations,
)
from conformance.errors import NothingSelectedError, UsageError
from conformance.files import describe_os_error, write_atomically
from conformance.locking import lock_folders
from conformance.wording import plural

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence
    from pathlib import Path

    from conformance.app.context import ProjectContext
    from conformance.engine.job import Job
    from conformance.engine.shards import Shard
    from conformance.model.run import Exclusion

UNLIMITED = 10**6


def durations_file(context: ProjectContext) -> Path:
    """Return where a project keeps how long jobs take."""
    return context.project.matrices / FILE_NAME


def durations_of(context: ProjectContext) -> Durations:
    """Return how long jobs take, as far as the project knows."""
    file = durations_file(context)
    try:
        return decode_durations(file.read_bytes(), str(file))
    except FileNotFoundError:
        return Durations()
    except OSError as error:
        raise UsageError(f"{file}: cannot be read: {describe_os_error(error)}") from None


def learn_durations(context: ProjectContext, folders: Iterable[Path]) -> Durations:
    """Add the durations of the jobs of runs to those that the project keeps, and return them all.

    Args:
        context: The project.
        folders: Directories of runs, or folders of such.

    Raises:
        InfrastructureError: If the disk refuses.
    """
    runs = chain.from_iterable(map(find_runs, folders))
    records = tuple(chain.from_iterable(load_run(run).records for run in runs))
    file = durations_file(context)
    with lock_folders({file.parent}, print_note):
        durations = update_durations(records, durations_of(context))
        write_atomically(file, durations.encoded())
    return durations


def parts_of(plan: Plan, possible: Sequence[Job], count: int, durations: Durations) -> list[Shard]:
    """Return the parts of a plan.

    They are cut from what may be, which every runner knows alike: what one of them cannot have, a
    lock or a Python, moves no job from a part to another.

    Args:
        plan: The whole plan.
        possible: The jobs that there may be, see `list_possible_jobs`.
        count: Number of parts.
        durations: How long jobs take: the parts take about as long as one another.
    """
    planned = {job.id: job for job in plan.jobs}
    parts = split_into_shards(possible, count, durations.of)
    for part in parts:
        part.jobs = [planned[job.id] for job in part.jobs if job.id in planned]
        opened = len({job.planned.cell.id for job in part.jobs})
        part.seconds = sum(map(durations.of, part.jobs)) + OPEN * opened
    return parts


def part_of(plan: Plan, possible: Sequence[Job], shard: str, durations: Durations) -> Plan:
    """Return the part of a plan that a shard runs.

    Args:
        plan: The whole plan.
        possible: The jobs that there may be, see `list_possible_jobs`.
        shard: `I/N`, the I-th of N parts, from 1.
        durations: How long jobs take: the parts take about as long as one another.

    Returns:
        Jobs that follow one another; the parts of all I, in order, make the whole.

    Raises:
        UsageError: If it is not `I/N` with I in 1 to N.
        NothingSelectedError: If the part has no jobs.
    """
    number, _, count = shard.partition("/")
    if not (number.isdigit() and count.isdigit() and 1 <= int(number) <= int(count) < UNLIMITED):
        raise UsageError(f"--shard {shard}: expected I/N with 1 <= I <= N, e.g. 1/4")
    if count == "1":
        return plan
    own = {
        job.id for job in _nth(split_into_shards(possible, int(count), durations.of), int(number))
    }
    jobs = tuple(job for job in plan.jobs if job.id in own)
    if not jobs:
        raise NothingSelectedError(f"shard {shard} of {plural(len(plan.jobs), 'job')} has none")
    cells = {job.planned.cell.id for job in jobs}
    return Plan(
        jobs=jobs,
        exclusions=tuple(one for one in plan.exclusions if number == "1" or _is_of(one, own)),
        cells=tuple(planned for planned in plan.cells if planned.cell.id in cells),
    )


def _nth(parts: Sequence[Shard], number: int) -> Sequence[Job]:
    """Return the jobs of a part, counted from 1; none of one that there is not."""
    return parts[number - 1].jobs if number <= len(parts) else ()


def _is_of(exclusion: Exclusion, own: Collection[tuple[str, str]]) -> bool:
    """Say whether what is left out would have been of a part: this host may be why it is."""
    if exclusion.case:
        return (exclusion.case, exclusion.cell) in own
    return any(cell == exclusion.cell for _, cell in own)
