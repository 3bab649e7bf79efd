"""A run: its plan is executed, and its records are written to a run directory."""

from __future__ import annotations

import contextlib
import random
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

import msgspec

from conformance.engine.blobs import CorruptBlobError
from conformance.engine.calibration import Calibration
from conformance.engine.job_runner import JobRunner, judge_attempts, observe
from conformance.engine.result_cache import group_by_file
from conformance.engine.run_directory import Results
from conformance.model.outcome import Outcome, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from conformance.engine.job import Executor, Job
    from conformance.engine.plan import Plan
    from conformance.engine.record_judge import Judge
    from conformance.engine.result_cache import ResultCache
    from conformance.engine.run_directory import RunDirectory
    from conformance.model.record import Record

    Progress = Callable[[Record], None]

ATTEMPTS: Final = "attempts"
"""Artifact of a job that was repeated: the outcome and the seconds of each attempt, as JSON."""


@dataclass(slots=True)
class Run:
    """One run under way.

    Attributes:
        plan: The jobs.
        directory: The run directory.
        executor: Runs what is neither recorded nor cached.
        cache: Observations and verdicts of earlier runs.
        judge: Judges the records, with the blobs of the directory.
        progress: Called with each record as it is final.
        calibration: The jobs that are known to be unstable on this host.
    """

    plan: Plan
    directory: RunDirectory
    executor: Executor
    cache: ResultCache
    judge: Judge
    progress: Progress = field(default=lambda _: None)
    calibration: Calibration = field(default_factory=Calibration)

    def execute(self) -> list[Record]:
        """Run the plan to its end.

        Returns:
            A record for every job of the plan, in the plan's order.

        Raises:
            InfrastructureError: If the disk refuses; what was recorded stays.
            CorruptRunError: If the directory holds a record that cannot be read.
        """
        runner = JobRunner(
            executor=self.executor, cache=self.cache, judge=self.judge, blobs=self.directory.blobs
        )
        records = {(record.case, record.cell): record for record in self._load_recorded()}
        files = [
            jobs
            for jobs in group_by_file(self.plan.jobs)
            if not any(map(self.calibration.of, jobs))
        ]
        with contextlib.closing(Results(self.directory)) as results:

            def finish(record: Record) -> None:
                results.append(record, sync=not record.cached)
                self.progress(record)
                records[record.case, record.cell] = record

            for jobs in files:
                if not any(job.id in records for job in jobs):
                    for record in self.cache.verdicts.take(jobs, self.directory.blobs) or ():
                        finish(record)
            left = [job for job in self.plan.jobs if job.id not in records]
            for record in runner.run_confirmed(left, self.calibration):
                finish(record)
        for jobs in files:
            judged = [records[job.id] for job in jobs]
            sound = all(record.verdict is not Verdict.INFRA for record in judged)
            if sound and all(job.id in runner.cached for job in jobs):
                self.cache.verdicts.put(jobs, judged)
        return [records[job.id] for job in self.plan.jobs]

    def _load_recorded(self) -> Iterator[Record]:
        """Yield the records of this directory, judged again: goldens may have changed."""
        known = {(record.case, record.cell): record for record in self.directory.read_records()}
        for job in self.plan.jobs:
            record = known.get(job.id)
            if record is None or not _is_of(record, job):
                continue
            try:
                judged = self.judge.rejudge(job, record)
            except CorruptBlobError:  # then the job simply runs again
                self.directory.blobs.drop_broken(record.artifacts.values())
            else:
                self.progress(judged)
                yield judged


@dataclass(slots=True, kw_only=True)
class RepeatedRun(Run):
    """A run of several attempts of each job: a job whose attempts disagree is flaky.

    Nothing is taken from the cache, which gets what is stable, and forgets what is not. The first
    attempt has the order of the plan, each later one an order of its own. Each attempt has
    processes of its own.

    Attributes:
        times: Attempts of each job.
        seed: Seed of the orders.
    """

    times: int
    seed: int

    def execute(self) -> list[Record]:
        """Run the plan to its end.

        Returns:
            A record for every job of the plan, in the plan's order.

        Raises:
            InfrastructureError: If the disk refuses.
        """
        attempts: dict[tuple[str, str], list[Record]] = {job.id: [] for job in self.plan.jobs}
        for number in range(self.times):
            jobs = shuffle_jobs(self.plan.jobs, self.seed, number)
            for job, record in observe(self.executor, jobs, self.directory.blobs):
                attempts[job.id].append(record)
                self.progress(self.judge.judge(job, record))
        with contextlib.closing(Results(self.directory)) as results:
            return [self._finish(job, attempts[job.id], results) for job in self.plan.jobs]

    def _finish(self, job: Job, attempts: Sequence[Record], results: Results) -> Record:
        judged = judge_attempts(self.judge, job, order_attempts(attempts))
        summary = msgspec.json.encode([_summarise(one) for one in attempts])
        artifacts = {**judged.artifacts, ATTEMPTS: self.directory.blobs.put(summary)}
        judged = replace(judged, artifacts=artifacts)
        results.append(judged, sync=False)
        if judged.verdict is Verdict.FLAKY:
            self.cache.drop(job)
        else:
            seen = replace(attempts[-1], attempts=len(attempts))
            self.cache.put(job, seen, self.directory.blobs)
        return judged


def shuffle_jobs(jobs: Sequence[Job], seed: int, number: int) -> list[Job]:
    """Return jobs in the order of an attempt: the first keeps the order of the plan.

    Files are shuffled, and the jobs within each: jobs of a file share its import.

    Args:
        jobs: The jobs.
        seed: Seed of the orders.
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


def order_attempts(attempts: Sequence[Record]) -> list[Record]:
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


def _summarise(record: Record) -> dict[str, Any]:
    return {
        "outcome": record.outcome,
        "error": record.signature,
        "seconds": record.seconds.get("job", 0.0),
    }


def _is_of(record: Record, job: Job) -> bool:
    """Say whether a record still stands for its job; what the host spoilt is run again."""
    return (
        record.case_hash == job.case.content_hash
        and record.cell_hash == job.planned.cell_hash
        and record.outcome not in {Outcome.INFRA, Outcome.NOT_RUN}
    )
