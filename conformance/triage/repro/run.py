"""What a file of its own is written from: jobs run on the spot, or as a run recorded them."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from conformance.engine.job_comparison import StoredJob, load_ir_text
from conformance.engine.record_judge import load_claimed_observation, name_golden_variant
from conformance.engine.run_directory import RunDirectory
from conformance.engine.run_loader import load_run
from conformance.engine.runner import Run
from conformance.errors import InfrastructureError, UsageError
from conformance.golden.errors import GoldenError
from conformance.golden.store import GoldenStore
from conformance.judge.agreement import compare_golden
from conformance.judge.conformance import judge_conformance
from conformance.judge.tolerance import Tolerance
from conformance.judge.values import Agreement
from conformance.model.outcome import Outcome
from conformance.scratch import temporary_folder
from conformance.triage.repro.header import Seen

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from conformance.engine.blobs import BlobStore
    from conformance.engine.job import Executor, Job
    from conformance.engine.plan import Plan
    from conformance.engine.record_judge import Judge
    from conformance.engine.result_cache import ResultCache
    from conformance.model.observation import Observation


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenJob:
    """A job with what was seen of it.

    Attributes:
        job: Case and cell.
        seen: What was seen.
        side: Its record and artifacts.
    """

    job: Job
    seen: Seen
    side: StoredJob


@contextlib.contextmanager
def run_now(
    plan: Plan, executor: Executor, cache: ResultCache, judge: Callable[[BlobStore], Judge]
) -> Iterator[list[SeenJob]]:
    """Run a plan, and keep its artifacts for as long as the context lasts.

    Args:
        plan: A few jobs.
        executor: Runs them.
        cache: Observations of earlier runs.
        judge: Returns the judge of the records whose artifacts are in a store.
    """
    with temporary_folder("repro") as folder:
        directory = RunDirectory(folder)
        run = Run(plan, directory, executor, cache, judge(directory.blobs))
        records = run.execute()
        yield [
            seen_job(job, StoredJob(record, directory.blobs))
            for job, record in zip(plan.jobs, records, strict=True)
        ]


def recorded(plan: Plan, directory: RunDirectory) -> list[SeenJob]:
    """Return what a run recorded of a plan's jobs.

    Args:
        plan: A few jobs.
        directory: The run's.

    Raises:
        UsageError: If it has none of a job, or of the case as it was.
    """
    run = load_run(directory)
    known = {(record.case, record.cell): record for record in run.records}
    found = []
    for job in plan.jobs:
        record = known.get(job.id)
        told = f"{directory.path}: {job.case.id} on {job.planned.cell.id}"
        if record is None:
            raise UsageError(f"{told} was not run there, expected that it was; leave out --run")
        if (record.case_hash, record.cell_hash) != (job.case.content_hash, job.planned.cell_hash):
            raise UsageError(f"{told} has changed since; leave out --run to run it as it is now")
        found.append(seen_job(job, StoredJob(record, run.blobs)))
    return found


def recorded_span(job: Job, observation: Observation) -> str:
    """Return the releases for which a job's golden says what was seen; empty where none does.

    Args:
        job: The job.
        observation: What was seen.
    """
    store = GoldenStore(job.case.families)
    try:
        golden = store.lookup(job.case, name_golden_variant(job), job.planned.release)
    except GoldenError:
        return ""
    if golden is None or golden.tainted or not golden.exact:
        return ""
    agreement, _ = compare_golden(observation, golden, Tolerance.of(job.case))
    return "" if agreement is Agreement.BEYOND else golden.span


def seen_job(job: Job, side: StoredJob) -> SeenJob:
    """Return what was seen of a job, judged by the case's own reference and claims alone.

    Raises:
        InfrastructureError: If the job could not be run.
        UsageError: If the cell cannot express it.
    """
    record = side.record
    said = record.error.message if record.error is not None else ""
    if record.outcome in {Outcome.INFRA, Outcome.NOT_RUN}:
        raise InfrastructureError(f"{record.case} on {record.cell}: {said}")
    if record.outcome is Outcome.UNSUPPORTED:
        raise UsageError(f"{record.case} on {record.cell}: unsupported: {said}; name another cell")
    observation = load_claimed_observation(job.case, record, side.blobs)
    conforms, reasons = judge_conformance(job.case, observation)
    hlo = load_ir_text(side, "hlo") if job.case.kind == "program" else None
    seen = Seen(
        observation=observation,
        conformance=conforms,
        reasons=reasons,
        hlo=hlo.text if hlo is not None else "",
    )
    return SeenJob(job=job, seen=seen, side=side)
