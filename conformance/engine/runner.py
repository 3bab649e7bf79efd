"""The run, as a pipeline: recorded, cached, executed, judged, confirmed, written."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import msgspec

from conformance.engine.blobs import CorruptBlobError
from conformance.engine.calibration import Calibration
from conformance.engine.confirmation import has_enough_attempts, judge_attempts, needs_confirmation
from conformance.engine.job import Finished
from conformance.engine.observe import abnormal
from conformance.engine.record_judge import golden_at_fault, record_of
from conformance.engine.run_directory import Results
from conformance.engine.verdict_cache import group_by_file
from conformance.errors import InfrastructureError
from conformance.model.outcome import ExitCode, Outcome, Stage, Verdict, is_unexpected
from conformance.worker.frames import clean

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Iterator

    from conformance.engine.blobs import BlobStore
    from conformance.engine.job import Executor, Job
    from conformance.engine.plan import Plan
    from conformance.engine.record_judge import Judge
    from conformance.engine.result_cache import ResultCache
    from conformance.engine.run_directory import RunDirectory
    from conformance.model.record import Record

    Progress = Callable[[Record], None]
    _Id = tuple[str, str]
    _Records = dict[_Id, Record]
    _Unsure = dict[_Id, tuple[Job, list[Record]]]


@dataclass(slots=True)
class Run:
    """One run under way.

    Attributes:
        plan: What to run.
        directory: Where it is written.
        executor: Runs what is neither recorded nor cached.
        cache: Observations of earlier runs.
        judge: Judges the records, with the blobs of the directory.
        progress: Called with each record as it is final.
        calibration: What is known not to be stable on this host.
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
        judge = self.judge
        records = self._recorded()
        unsure: _Unsure = {}
        with contextlib.closing(Results(self.directory)) as results:
            settled = self._settled(records, results)
            kept = {*settled}
            for job in self.plan.jobs:
                if job.id in records:
                    continue
                unchanged = judged_from_cache(job, self.cache, judge, self.directory.blobs)
                if unchanged is None:
                    continue
                if needs_confirmation(unchanged):
                    unsure[job.id] = (job, [unchanged])
                else:
                    records[job.id] = self._final(unchanged, results, sync=False)
                    kept.add(job.id)
            known = records.keys() | unsure.keys()
            for job, record in self._executed([j for j in self.plan.jobs if j.id not in known]):
                judged = _judged(judge, job, record)
                if needs_confirmation(judged):
                    unsure[job.id] = (job, [record])
                    continue
                records[job.id] = self._final(judged, results)
                # Only now: a cache whose disk is full does not cost the run this record.
                if self._keep(job, record, judged):
                    kept.add(job.id)
            for confirmed in self._confirmed(unsure, kept):
                records[confirmed.case, confirmed.cell] = self._final(confirmed, results)
        self._settle(records, kept, settled)
        return [records[job.id] for job in self.plan.jobs]

    def _settled(self, records: _Records, results: Results) -> set[_Id]:
        """Add the records of case files of which nothing has changed; return which these are."""
        found: set[_Id] = set()
        for jobs in self._stable_files():
            if any(job.id in records for job in jobs):
                continue
            for record in self.cache.settled.take(jobs, self.directory.blobs) or ():
                found.add((record.case, record.cell))
                records[record.case, record.cell] = self._final(record, results, sync=False)
        return found

    def _settle(self, records: _Records, kept: Container[_Id], settled: Container[_Id]) -> None:
        """Keep the judged records of case files whose jobs would all be taken from the cache."""
        for jobs in self._stable_files():
            if jobs[0].id in settled:
                continue
            judged = [records[job.id] for job in jobs]
            sound = all(record.verdict is not Verdict.INFRA for record in judged)
            if sound and all(job.id in kept for job in jobs):
                self.cache.settled.put(jobs, judged)

    def _stable_files(self) -> Iterator[list[Job]]:
        """Yield the jobs of each case file that has none known not to be stable on this host."""
        for jobs in group_by_file(self.plan.jobs):
            if not any(self.calibration.of(job) for job in jobs):
                yield jobs

    def _confirmed(self, unsure: _Unsure, kept: set[_Id]) -> Iterator[Record]:
        """Try what is unexpected again, in another order, each job in a process of its own."""
        while unsure:
            once_more = [replace(job, alone=True) for job, _ in reversed(unsure.values())]
            for job, tried in self._executed(once_more):
                judged = _judged(self.judge, job, tried)
                again = judged if judged.outcome is Outcome.INFRA else tried
                attempts = unsure[job.id][1]
                attempts.append(again)
                unstable = self.calibration.of(job)
                settled = judge_attempts(self.judge, job, attempts, unstable)
                if not has_enough_attempts(settled, len(attempts), unstable):
                    continue
                del unsure[job.id]
                yield settled
                if settled.verdict is not Verdict.FLAKY and unstable is None:
                    seen = replace(again, attempts=len(attempts))
                    if self._keep(job, seen, settled):
                        kept.add(job.id)

    def _keep(self, job: Job, record: Record, judged: Record) -> bool:
        expected = not is_unexpected(judged.verdict, judged.conformance)
        return self.cache.put(job, record, self.directory.blobs, expected=expected)

    def _recorded(self) -> _Records:
        """Return what this directory holds already, judged anew: goldens may have changed."""
        known = {(record.case, record.cell): record for record in self.directory.read_records()}
        records = {}
        for job in self.plan.jobs:
            record = known.get(job.id)
            if record is None or not _is_of(record, job):
                continue
            try:
                judged = self.judge.rejudge(job, record)
            except CorruptBlobError:  # then the job simply runs again
                self.directory.blobs.drop_broken(record.artifacts.values())
            else:
                records[job.id] = judged
                self.progress(judged)
        return records

    def _executed(self, jobs: Iterable[Job]) -> Iterator[tuple[Job, Record]]:
        finished_jobs = self.executor.run(jobs)
        try:
            for finished in finished_jobs:
                yield finished.job, self._record(finished)
        finally:
            finished_jobs.close()

    def _record(self, finished: Finished) -> Record:
        """Return the record of a job, `infra` where none can be made of what it reported.

        A job may report anything. That must not end the run for all others.
        """
        blobs = self.directory.blobs
        try:
            record = record_of(finished, blobs)
            msgspec.json.encode(record)
        except InfrastructureError:  # the disk
            raise
        except Exception as error:  # noqa: BLE001 - whatever it is, it is this job's
            return record_of(_unrecorded(finished.job, error), blobs)
        return record

    def _final(self, record: Record, results: Results, *, sync: bool = True) -> Record:
        results.append(record, sync=sync)
        self.progress(record)
        return record


def _judged(judge: Judge, job: Job, record: Record) -> Record:
    """Return a new record as judged, `infra` where what the job reported cannot be judged."""
    try:
        return judge.judge(job, record)
    except InfrastructureError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever it is, it is this job's
        finished = _unrecorded(job, error)
        broken = replace(
            record, outcome=finished.outcome, error=finished.error, artifacts={}, facts={}, ir={}
        )
        return judge.judge(job, broken)


def _unrecorded(job: Job, error: Exception) -> Finished:
    """Return the ending of a job that reported what no record can be made of."""
    text = f"no record can be made of what the job reported: {type(error).__name__}: {error}"
    said = abnormal("infra", str(clean(text)), job)
    return Finished(job=job, outcome=Outcome.INFRA, stage=Stage.EXECUTE, error=said)


def judged_from_cache(
    job: Job, cache: ResultCache, judge: Judge, blobs: BlobStore
) -> Record | None:
    """Return the judged record of a job that has not changed since it ran.

    Args:
        job: The job.
        cache: Observations of earlier runs.
        judge: Judges by the goldens as they are now.
        blobs: The run's blobs, which get those of the record.

    Returns:
        The record; None when there is none, or its blobs are broken: they are dropped, and the
        job simply runs again.
    """
    record = cache.take(job, blobs)
    if record is None:
        return None
    try:
        return replace(judge.judge(job, record), attempts=record.attempts)
    except CorruptBlobError:
        cache.forget(record)
        blobs.drop_broken(record.artifacts.values())
        return None


def _is_of(record: Record, job: Job) -> bool:
    """Say whether a record still stands for its job; what the host spoilt is run again."""
    return (
        record.case_hash == job.case.content_hash
        and record.cell_hash == job.planned.cell_hash
        and record.outcome not in {Outcome.INFRA, Outcome.NOT_RUN}
    )


def exit_code(records: Iterable[Record]) -> ExitCode:
    """Return the exit status that records amount to.

    A verdict that gates is unexpected; so is a new case that no reference vouches for. A golden
    that cannot be read is a fault of the project's. Nothing but infrastructure faults, or only
    exclusions, is no success.
    """
    seen = list(records)
    if any(unexpected(record) for record in seen):
        return ExitCode.UNEXPECTED
    if any(golden_at_fault(record) for record in seen):
        return ExitCode.USAGE
    if any(record.verdict is Verdict.INFRA for record in seen):
        return ExitCode.INFRA
    if all(record.verdict is Verdict.EXCLUDED for record in seen):
        return ExitCode.NOTHING
    return ExitCode.OK


def unexpected(record: Record) -> bool:
    """Say whether a record makes the run fail."""
    return is_unexpected(record.verdict, record.conformance)
