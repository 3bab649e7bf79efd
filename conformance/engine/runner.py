"""Execution of a plan, with its records and `run.json` written to a run directory."""

from __future__ import annotations

import contextlib
import random
import sys
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Final

import msgspec

from conformance import __version__
from conformance.engine.cache.blobs import CorruptBlobError
from conformance.engine.cache.results import collect_host_facts, hash_kit
from conformance.engine.cache.verdicts import group_by_file
from conformance.engine.calibration import Calibration
from conformance.engine.job_runner import JobRunner, judge_attempts
from conformance.engine.record_judge import execute_jobs
from conformance.engine.runs.directory import Results, get_current_time
from conformance.engine.workers.transcript import list_judged_blobs
from conformance.model.outcome import Outcome, Verdict
from conformance.model.run import RunCase, RunCell, RunInfo

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from conformance.engine.cache.results import ResultCache
    from conformance.engine.job import Executor, Job
    from conformance.engine.plan import Plan
    from conformance.engine.record_judge import Judge
    from conformance.engine.runs.directory import RunDirectory
    from conformance.model.record import Record

    Progress = Callable[[Record], None]
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from conformance.model.case import Case
    from conformance.model.outcome import ExitCode
    from conformance.model.run import RunSuite


ATTEMPTS: Final = "attempts"
"""Artifact of a repeated job: outcome and seconds of each attempt, as JSON."""


@dataclass(slots=True)
class Run:
    """One run of a plan.

    Attributes:
        plan: Plan with the jobs and exclusions.
        directory: The run directory.
        executor: Executes the jobs that are neither recorded nor cached.
        cache: Observations and verdicts of earlier runs.
        judge: Judges the records, with the blobs of the directory.
        progress: Called with each final record.
        rerun: Called with each unexpected record whose job runs again before it is reported.
        calibration: The jobs that are known to be unstable on this host.
    """

    plan: Plan
    directory: RunDirectory
    executor: Executor
    cache: ResultCache
    judge: Judge
    progress: Progress = field(default=lambda _: None)
    rerun: Progress = field(default=lambda _: None)
    calibration: Calibration = field(default_factory=Calibration)

    def execute(self) -> list[Record]:
        """Run the plan to its end.

        Returns:
            A record for every job of the plan, in the plan's order.

        Raises:
            InfrastructureError: If the disk refuses; the records so far are kept.
            CorruptRunError: If the directory holds a record that cannot be read.
        """
        runner = JobRunner(
            executor=self.executor, cache=self.cache, judge=self.judge, blobs=self.directory.blobs,
            rerun=self.rerun,
        )  # fmt: skip
        records = {(record.case, record.cell): record for record in self._load_recorded()}
        # An unstable job depends on the calibration, which is no part of the key of a verdict.
        files = [
            jobs
            for jobs in group_by_file(self.plan.jobs)
            if not any(map(self.calibration.find, jobs))
        ]
        taken: set[tuple[str, str]] = set()
        with contextlib.closing(Results(self.directory)) as results:

            def finish(record: Record) -> None:
                # Before it is reported: a record that was shown survives `kill -9`.
                results.append(record, sync=not record.cached)
                self.progress(record)
                records[record.case, record.cell] = record

            # Whole files only: cached verdicts are stored by file.
            new = [jobs for jobs in files if not any(job.id in records for job in jobs)]
            for record in self.cache.take_files(new, self.directory.blobs):
                finish(record)
                taken.add((record.case, record.cell))
            left = [job for job in self.plan.jobs if job.id not in records]
            self.cache.load_remote(left)
            for record in runner.run_confirmed(left, self.calibration):
                finish(record)
        self._cache_files(files, records, new=runner.cached, earlier=taken)
        return [records[job.id] for job in self.plan.jobs]

    def _cache_files(
        self,
        files: Iterable[Sequence[Job]],
        records: Mapping[tuple[str, str], Record],
        *,
        new: set[tuple[str, str]],
        earlier: set[tuple[str, str]],
    ) -> None:
        """Store the judged records of whole case files, also in the shared cache.

        Args:
            files: Jobs of each case file in each cell.
            records: Record of each job.
            new: Jobs whose observation is cached, and which were judged by this run.
            earlier: Jobs whose judged records were cached before.
        """
        judged = [(jobs, [records[job.id] for job in jobs]) for jobs in files]
        # A fault of the host is gone the next time, a cached verdict is not.
        sound = [
            (jobs, found)
            for jobs, found in judged
            if all(record.verdict is not Verdict.INFRA for record in found)
        ]
        self.cache.put_files(file for file in sound if all(job.id in new for job in file[0]))
        cached = new | earlier
        shared = (file for file in sound if all(job.id in cached for job in file[0]))
        self.cache.share_files(shared, len(self.plan.jobs))

    def _load_recorded(self) -> Iterator[Record]:
        """Yield the records of this directory, rejudged: goldens may have changed since."""
        known = {(record.case, record.cell): record for record in self.directory.read_records()}
        self.directory.blobs.fetch_missing(
            blob for record in known.values() for blob in list_judged_blobs(record.artifacts)
        )
        for job in self.plan.jobs:
            record = known.get(job.id)
            if record is None or not _is_current(record, job):
                continue
            try:
                judged = self.judge.rejudge(job, record)
            except CorruptBlobError:  # the job runs again
                self.directory.blobs.drop_broken(record.artifacts.values())
            else:
                self.progress(judged)
                yield judged


@dataclass(slots=True, kw_only=True)
class RepeatedRun(Run):
    """A run with several attempts of each job: a job whose attempts disagree is flaky.

    Nothing is read from the cache. Stable jobs are added to it, flaky ones are removed. The first
    attempt has the order of the plan, each later one its own order and its own processes.

    Attributes:
        times: Attempts of each job.
        seed: Seed of the shuffled orders.
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
        # Jobs with an attempt on another processor, whose results the cache does not hold.
        elsewhere: set[tuple[str, str]] = set()
        for number in range(self.times):
            jobs = shuffle_jobs(self.plan.jobs, self.seed, number)
            for executed in execute_jobs(self.executor, jobs, self.directory.blobs):
                job, record = executed.job, executed.record
                attempts[job.id].append(record)
                if not executed.same_host:
                    elsewhere.add(job.id)
                self.progress(self.judge.judge(job, record, values=executed.values))
        # Only now: a record has the verdict of all attempts, so a killed run starts again.
        with contextlib.closing(Results(self.directory)) as results:
            return [
                self._finish(job, attempts[job.id], results, is_cached=job.id not in elsewhere)
                for job in self.plan.jobs
            ]

    def _finish(
        self, job: Job, attempts: Sequence[Record], results: Results, *, is_cached: bool
    ) -> Record:
        judged = judge_attempts(self.judge, job, order_attempts(attempts))
        summary = msgspec.json.encode([_summarise(attempt) for attempt in attempts])
        artifacts = {**judged.artifacts, ATTEMPTS: self.directory.blobs.put(summary)}
        judged = replace(judged, artifacts=artifacts)
        results.append(judged, sync=False)
        if judged.verdict is Verdict.FLAKY:
            self.cache.drop(job)
        elif is_cached:
            confirmed = replace(attempts[-1], attempts=len(attempts))
            self.cache.put(job, confirmed, self.directory.blobs)
        return judged


def shuffle_jobs(jobs: Sequence[Job], seed: int, number: int) -> list[Job]:
    """Return jobs in the order of an attempt: the first keeps the order of the plan.

    Files are shuffled, and the jobs within each file. The jobs of a file stay together, because
    they share its import.

    Args:
        jobs: Jobs of a plan.
        seed: Seed of the orders.
        number: Index of the attempt, from 0.
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
    """Return attempts with a failed attempt first, for its evidence, then those that succeeded.

    Args:
        attempts: The attempts of a job, in the order they were made.
    """
    observed = [attempt for attempt in attempts if attempt.outcome.observed]
    failed = next((attempt for attempt in observed if attempt.outcome is not Outcome.OK), None)
    if failed is None:
        return sorted(attempts, key=lambda attempt: not attempt.outcome.observed)
    others = [attempt for attempt in attempts if attempt is not failed]
    return [failed, *sorted(others, key=lambda attempt: attempt.outcome is not Outcome.OK)]


def _summarise(record: Record) -> dict[str, Any]:
    return {
        "outcome": record.outcome,
        "error": record.signature,
        "seconds": record.seconds.get("job", 0.0),
    }


def _is_current(record: Record, job: Job) -> bool:
    """Return whether a record is valid for its job; jobs that the host failed are run again."""
    return (
        record.case_hash == job.case.content_hash
        and record.cell_hash == job.planned.cell_hash
        and record.outcome not in {Outcome.INFRA, Outcome.NOT_RUN}
    )


_STORED_FIELDS: Final = tuple(
    field.name for field in fields(RunCase) if field.name not in {"file", "policy"}
)
"""Fields of a case that `run.json` stores unchanged."""


def make_run_info(
    plan: Plan,
    *,
    request: Mapping[str, Any],
    matrix: str,
    root: Path,
    suite: RunSuite | None = None,
) -> RunInfo:
    """Return the content of `run.json` before the first job.

    Args:
        plan: The plan of the run.
        request: Options of the command.
        matrix: Name or file of the matrix, empty if cells were named.
        root: Folder of the project.
        suite: The suite of the run, None for cases.
    """
    return RunInfo(
        started=get_current_time(),
        root=str(root.absolute()),
        request=dict(request),
        matrix=matrix,
        versions={"jax-conformance": __version__, "kit": hash_kit(), "python": sys.version},
        host=dict(collect_host_facts()),
        cells=tuple(
            RunCell(
                id=p.cell.id,
                lock=p.lock_hash,
                hash=p.cell_hash,
                layer=p.layer,
                selector=p.cell.selector,
                note=p.note,
                versions=dict(p.versions),
            )
            for p in plan.cells
        ),
        exclusions=plan.exclusions,
        plan=tuple(job.id for job in plan.jobs),
        cases=describe_cases((job.case for job in plan.jobs), root),
        suite=suite,
    )


def describe_cases(cases: Iterable[Case], root: Path) -> dict[str, RunCase]:
    """Return the entries of cases in `run.json`, by case id.

    Args:
        cases: The cases, possibly repeated.
        root: Folder to which their files are relative.
    """
    unique = {case.id: case for case in cases}
    return {
        name: RunCase(
            file=str(case.file.relative_to(root) if case.file.is_relative_to(root) else case.file),
            policy=dict(case.policy),
            **{name: getattr(case, name) for name in _STORED_FIELDS},
        )
        for name, case in unique.items()
    }


def finish_run(
    info: RunInfo, code: ExitCode, identities: Mapping[str, Mapping[str, Any]]
) -> RunInfo:
    """Return the content of `run.json` after the last job.

    Args:
        info: Content of `run.json` before the first job.
        code: Exit status of the run.
        identities: Identities that the workers reported, by cell id.
    """
    plain = {cell: dict(identity) for cell, identity in identities.items()}
    return replace(info, finished=get_current_time(), exit=int(code), identities=plain)
