"""A run in which each job is tried several times: what disagrees with itself is flaky."""

from __future__ import annotations

import contextlib
import random
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import msgspec

from conformance.engine.confirmation import judge_attempts
from conformance.engine.record_judge import record_of
from conformance.engine.run_directory import Results
from conformance.model.outcome import Outcome, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from conformance.engine.job import Executor, Job
    from conformance.engine.plan import Plan
    from conformance.engine.record_judge import Judge
    from conformance.engine.result_cache import ResultCache
    from conformance.engine.run_directory import RunDirectory
    from conformance.model.record import Record

ATTEMPTS: Final = "attempts"
"""Artifact of a job that was repeated: what came of each attempt, and how long it took, as JSON."""


@dataclass(kw_only=True)
class RepeatedRun:
    """One execution of a plan, each job of it several times; nothing is taken from the cache.

    The first time jobs run in the order of the plan, then each time in another one, and always in
    processes that no earlier attempt ran in.

    Attributes:
        plan: What runs.
        directory: Where records and blobs go.
        executor: Runs jobs.
        cache: Gets what is stable; what is not is forgotten there.
        judge: Judges the records, with the blobs of the directory.
        times: How often each job is tried.
        seed: What the orders begin with.
        progress: Called with the record of each attempt.
    """

    plan: Plan
    directory: RunDirectory
    executor: Executor
    cache: ResultCache
    judge: Judge
    times: int
    seed: int
    progress: Callable[[Record], None]

    def execute(self) -> list[Record]:
        """Run the plan to its end.

        Returns:
            A record for every job of the plan, in the plan's order.

        Raises:
            InfrastructureError: If the disk refuses.
        """
        attempts: dict[tuple[str, str], list[Record]] = {job.id: [] for job in self.plan.jobs}
        for number in range(self.times):
            self._try(shuffled(self.plan.jobs, self.seed, number), attempts)
        with contextlib.closing(Results(self.directory)) as results:
            return [self._settled(job, attempts[job.id], results) for job in self.plan.jobs]

    def _try(self, jobs: Iterable[Job], attempts: dict[tuple[str, str], list[Record]]) -> None:
        finished_jobs = self.executor.run(jobs)
        try:
            for finished in finished_jobs:
                record = record_of(finished, self.directory.blobs)
                attempts[finished.job.id].append(record)
                self.progress(self.judge.judge(finished.job, record))
        finally:
            finished_jobs.close()

    def _settled(self, job: Job, attempts: Sequence[Record], results: Results) -> Record:
        settled = judge_attempts(self.judge, job, told_first(attempts))
        told = msgspec.json.encode([_attempt(one) for one in attempts])
        artifacts = {**settled.artifacts, ATTEMPTS: self.directory.blobs.put(told)}
        settled = replace(settled, artifacts=artifacts)
        results.append(settled, sync=False)
        if settled.verdict is Verdict.FLAKY:
            self.cache.drop(job)
        else:
            seen = replace(attempts[-1], attempts=len(attempts))
            self.cache.put(job, seen, self.directory.blobs)
        return settled


def shuffled(jobs: Sequence[Job], seed: int, number: int) -> list[Job]:
    """Return jobs in the order of an attempt: the first is as it is planned.

    Files are shuffled, and the jobs in each: what they share stays theirs for as long.

    Args:
        jobs: The jobs.
        seed: What the orders begin with.
        number: The attempt, from 0.
    """
    if not number:
        return list(jobs)
    chance = random.Random(f"{seed} {number}")  # noqa: S311 - an order, no secret
    files: dict[object, list[Job]] = {}
    for job in jobs:
        files.setdefault(job.case.file, []).append(job)
    groups = list(files.values())
    chance.shuffle(groups)
    for group in groups:
        chance.shuffle(group)
    return [job for group in groups for job in group]


def told_first(attempts: Sequence[Record]) -> list[Record]:
    """Return attempts with one that failed first, for its evidence, then those that ended well.

    Args:
        attempts: The attempts of a job, in the order they were made.
    """
    seen = [one for one in attempts if one.outcome.observed]
    failed = next((one for one in seen if one.outcome is not Outcome.OK), None)
    if failed is None:
        return sorted(attempts, key=lambda one: not one.outcome.observed)
    others = [one for one in attempts if one is not failed]
    return [failed, *sorted(others, key=lambda one: one.outcome is not Outcome.OK)]


def _attempt(record: Record) -> dict[str, Any]:
    error = record.error
    return {
        "outcome": record.outcome,
        "error": "" if error is None else error.signature,
        "seconds": record.seconds.get("job", 0.0),
    }
