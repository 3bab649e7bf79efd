"""Calibrating: the same jobs again and again, and which of them do not do the same each time."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from conformance.engine.calibration import Unstable
from conformance.engine.record_judge import observation_of, record_of
from conformance.engine.run_info import current_time
from conformance.judge.agreement import DISAGREE, disagreement
from conformance.judge.ir import changed_facts
from conformance.judge.tolerance import Tolerance
from conformance.model.case import Policy

if TYPE_CHECKING:
    from collections.abc import Iterable

    from conformance.engine.blobs import BlobStore
    from conformance.engine.job import Executor, Job
    from conformance.model.record import Record


@dataclass(slots=True)
class _Tried:
    """The attempts of one job.

    Attributes:
        job: The job.
        first: Its first attempt, none until there is one that says something about JAX.
        attempts: How many there were.
        unlike: How those that were unlike the first differed from it.
    """

    job: Job
    first: Record | None = None
    attempts: int = 0
    unlike: list[str] = field(default_factory=list)


class Calibrator:
    """Tries jobs, attempt by attempt, and keeps which were unlike their first one.

    Args:
        jobs: The jobs.
        executor: Runs them.
        blobs: Where what they produce goes.
    """

    def __init__(self, jobs: Iterable[Job], executor: Executor, blobs: BlobStore) -> None:
        self._tried = {job.id: _Tried(job) for job in jobs}
        self._executor = executor
        self._blobs = blobs
        self._attempts = 0

    def attempt(self) -> None:
        """Try every job once more: in another order each time, every other time all alone.

        Raises:
            InfrastructureError: If the disk refuses.
        """
        jobs = [replace(tried.job, alone=self._attempts % 2 == 1) for tried in self._all]
        random.Random(self._attempts).shuffle(jobs)  # noqa: S311 - an order, no secret
        self._attempts += 1
        for finished in self._executor.run(jobs):
            self._take(self._tried[finished.job.id], record_of(finished, self._blobs))

    def _take(self, tried: _Tried, record: Record) -> None:
        if not record.outcome.observed:
            return
        tried.attempts += 1
        if tried.first is None:
            tried.first = record
        elif said := how_unlike(tried.job, tried.first, record, self._blobs):
            tried.unlike.append(said)

    @property
    def _all(self) -> list[_Tried]:
        return list(self._tried.values())

    @property
    def looked_at(self) -> frozenset[tuple[str, str]]:
        """Case and cell of the jobs of which something is known now."""
        return frozenset(tried.job.id for tried in self._all if tried.attempts > 1)

    @property
    def unstable(self) -> tuple[Unstable, ...]:
        """The jobs that are not stable."""
        day = current_time()[: len("2026-05-01")]
        return tuple(
            Unstable(
                case=tried.job.case.id,
                cell=tried.job.planned.cell.id,
                case_hash=tried.job.case.content_hash,
                attempts=tried.attempts,
                differing=len(tried.unlike),
                example=tried.unlike[0],
                day=day,
            )
            for tried in self._all
            if tried.unlike
        )


def how_unlike(job: Job, first: Record, other: Record, blobs: BlobStore) -> str:
    """Return how two attempts of a job are unlike each other, empty when they are not.

    Endings, values beyond the tolerance, facts that gate and IRs count, the latter as far as the
    case's policy says more of them than that they inform.

    Args:
        job: The job.
        first: An attempt.
        other: Another.
        blobs: Where both are.
    """
    case = job.case
    seen, again = observation_of(first, blobs), observation_of(other, blobs)
    said = disagreement(seen, again, Tolerance.of(case)).removeprefix(DISAGREE)
    if said:
        return said
    if case.policy_of("facts") is Policy.GATE:
        said = next(changed_facts(other.facts, first.facts), "").replace(", golden ", ", first ")
    if said:
        return said
    for ir in first.ir.keys() & other.ir.keys():
        if case.policy_of(ir) is not Policy.INFORM and first.ir[ir].neutral != other.ir[ir].neutral:
            return f"{ir} differs"
    return ""
