"""Batches: jobs of one cell that a host runs in sequence, for clusters and for shards. Pure."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from conformance.engine.job import Job

ROUNDS: Final = 3
"""Batches that each slot is to get from the remaining work."""
MOST: Final = 256
"""Jobs of a batch, whatever they take."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Jobs of one cell that a node runs in sequence.

    Attributes:
        key: Key of the batch.
        jobs: The jobs.
        seconds: Estimated duration.
        alone: Whether nothing else may run on the machine at the same time.
    """

    key: str
    jobs: tuple[Job, ...]
    seconds: float
    alone: bool = False

    @property
    def cell(self) -> str:
        """Id of the cell; of tests also the suite."""
        return get_cell_key(self.jobs[0])

    @property
    def accelerator(self) -> str:
        """Accelerator that the batch needs, empty for none."""
        return get_required_accelerator(self.jobs[0])


def get_required_accelerator(job: Job) -> str:
    """Return the accelerator that a job needs, `gpu` or `tpu`; empty for none."""
    place = job.planned.cell.place
    return place.kind if place.real else ""


def get_file_key(job: Job) -> str:
    """Return the file of a job as text: two equal paths are compared part by part."""
    return str(job.case.file)


def take_batch(
    jobs: deque[Job], limit: float, estimate: Callable[[Job], float]
) -> tuple[tuple[Job, ...], float]:
    """Take the jobs of a batch from the left of a queue.

    Args:
        jobs: Jobs of one cell, those of a file together; not empty.
        limit: Seconds that the batch should take; a single job may take longer.
        estimate: Returns the expected seconds of a job.

    Returns:
        The jobs, at least one, and their expected seconds.
    """
    taken: list[Job] = []
    seconds = 0.0
    is_suite = jobs[0].case.kind == "test"
    while jobs:
        job = jobs[0]
        took = estimate(job)
        # Another file is another import; a batch with enough work does not begin one. Tests may
        # depend on those before them in their file, which stays whole.
        is_new_file = bool(taken) and get_file_key(job) != get_file_key(taken[-1])
        may_end = bool(taken) and (is_new_file or not is_suite)
        is_enough = len(taken) >= MOST or (is_new_file and seconds > limit / 2)
        if may_end and (seconds + took > limit or is_enough):
            break
        taken.append(jobs.popleft())
        seconds += took
    return tuple(taken), seconds


def cut_batches(
    jobs: Sequence[Job], limit: float, estimate: Callable[[Job], float]
) -> Iterator[Batch]:
    """Yield jobs as batches, in their order.

    Args:
        jobs: Jobs of any cells, those of a cell together.
        limit: See `take_batch`.
        estimate: See `take_batch`.
    """
    for _, own in groupby(jobs, get_cell_key):
        queue = deque(own)
        while queue:
            taken, seconds = take_batch(queue, limit, estimate)
            yield Batch("", taken, seconds)


def get_cell_key(job: Job) -> str:
    """Return the cell of a job, with the suite if it is a test: a batch has only one of each."""
    cell = job.planned.cell.id
    return f"{cell} {job.case.content_hash}" if job.case.kind == "test" else cell


def order_by_cell(jobs: Iterable[Job]) -> list[Job]:
    """Return jobs with those of a cell and file together, in the order of their first jobs.

    In each cell, jobs that need packages other than jax come last: a server with these packages
    forks more slowly.

    Args:
        jobs: The jobs.
    """
    groups: dict[tuple[bool, str, str], list[Job]] = {}
    for job in jobs:
        key = (bool(job.case.requires), get_cell_key(job), get_file_key(job))
        groups.setdefault(key, []).append(job)
    ordered = sorted(groups, key=lambda key: key[0])
    return [job for key in ordered for job in groups[key]]
