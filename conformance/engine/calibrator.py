"""Calibration of a host: several attempts of each job, and the jobs whose attempts differ."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from conformance.engine.calibration import Unstable
from conformance.engine.job_runner import observe
from conformance.engine.record_judge import load_observation
from conformance.engine.run_info import current_time
from conformance.judge.agreement import DISAGREE, find_disagreement
from conformance.judge.ir import find_changed_facts
from conformance.judge.tolerance import Tolerance
from conformance.model.case import Policy

if TYPE_CHECKING:
    from collections.abc import Iterable

    from conformance.engine.blobs import BlobStore
    from conformance.engine.job import Executor, Job
    from conformance.model.record import Record


@dataclass(slots=True)
class _Attempts:
    """The attempts of one job.

    Attributes:
        job: The job.
        first: The first attempt that was observed, None until there is one.
        count: Number of observed attempts.
        differences: How attempts differed from the first, for each that did.
    """

    job: Job
    first: Record | None = None
    count: int = 0
    differences: list[str] = field(default_factory=list)


class Calibrator:
    """Runs jobs several times, and finds those whose attempts differ from their first one.

    Args:
        jobs: The jobs.
        executor: Runs them.
        blobs: Receives their artifacts.
    """

    def __init__(self, jobs: Iterable[Job], executor: Executor, blobs: BlobStore) -> None:
        self._attempts = {job.id: _Attempts(job) for job in jobs}
        self._executor = executor
        self._blobs = blobs
        self._rounds = 0

    def attempt(self) -> None:
        """Run every job once more: in another order each time, every other time all alone.

        Raises:
            InfrastructureError: If the disk refuses.
        """
        alone = self._rounds % 2 == 1
        jobs = [replace(one.job, alone=alone) for one in self._attempts.values()]
        random.Random(self._rounds).shuffle(jobs)  # noqa: S311 - an order, no secret
        self._rounds += 1
        for job, record in observe(self._executor, jobs, self._blobs):
            if not record.outcome.observed:
                continue
            attempts = self._attempts[job.id]
            attempts.count += 1
            if attempts.first is None:
                attempts.first = record
            elif difference := find_difference(attempts.job, attempts.first, record, self._blobs):
                attempts.differences.append(difference)

    @property
    def compared(self) -> frozenset[tuple[str, str]]:
        """Case and cell of the jobs with at least two attempts."""
        return frozenset(job for job, one in self._attempts.items() if one.count > 1)

    @property
    def unstable(self) -> tuple[Unstable, ...]:
        """The jobs that are not stable."""
        day = current_time()[: len("2026-05-01")]
        return tuple(
            Unstable(
                case=one.job.case.id,
                cell=one.job.planned.cell.id,
                case_hash=one.job.case.content_hash,
                attempts=one.count,
                differing=len(one.differences),
                example=one.differences[0],
                day=day,
            )
            for one in self._attempts.values()
            if one.differences
        )


def find_difference(job: Job, first: Record, other: Record, blobs: BlobStore) -> str:
    """Return how two attempts of a job differ, empty if they do not.

    Endings, values beyond the tolerance, facts that gate and IRs count, the latter as far as the
    case's policy says more of them than that they inform.

    Args:
        job: The job.
        first: An attempt.
        other: Another.
        blobs: Their artifacts.
    """
    case = job.case
    seen, again = load_observation(first, blobs), load_observation(other, blobs)
    said = find_disagreement(seen, again, Tolerance.of(case)).removeprefix(DISAGREE)
    if said:
        return said
    if case.policy_of("facts") is Policy.GATE:
        said = next(find_changed_facts(other.facts, first.facts), "").replace(
            ", golden ", ", first "
        )
    if said:
        return said
    for ir in first.ir.keys() & other.ir.keys():
        if case.policy_of(ir) is not Policy.INFORM and first.ir[ir].neutral != other.ir[ir].neutral:
            return f"{ir} differs"
    return ""
