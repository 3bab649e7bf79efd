"""The observations that a reproduction is written from: of new jobs, or of a recorded run."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from conformance.engine.job_comparison import load_ir_text
from conformance.engine.record_judge import load_claimed_observation, name_golden_variant
from conformance.engine.runner import Run
from conformance.engine.runs.directory import RunDirectory
from conformance.engine.runs.loader import load_run
from conformance.engine.runs.stored_job import StoredJob
from conformance.errors import InfrastructureError, UsageError
from conformance.golden.document import GoldenError
from conformance.golden.store import GoldenStore
from conformance.judge.agreement import compare_golden
from conformance.judge.conformance import judge_conformance
from conformance.judge.difference import Agreement
from conformance.judge.tolerance import Tolerance
from conformance.model.observation import EXAMPLE, FALSIFYING
from conformance.model.outcome import Outcome
from conformance.scratch import temporary_folder
from conformance.triage.repro.header import JudgedObservation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from conformance.engine.cache.blobs import BlobStore
    from conformance.engine.cache.results import ResultCache
    from conformance.engine.job import Executor, Job
    from conformance.engine.plan import Plan
    from conformance.engine.record_judge import Judge
    from conformance.model.observation import Observation


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedJob:
    """A job with its observation.

    Attributes:
        job: Case and cell.
        seen: The judged observation.
        side: Its record and artifacts.
    """

    job: Job
    seen: JudgedObservation
    side: StoredJob


@contextlib.contextmanager
def run_plan(
    plan: Plan, executor: Executor, cache: ResultCache, judge: Callable[[BlobStore], Judge]
) -> Iterator[list[ObservedJob]]:
    """Run a plan; its artifacts are kept until the context ends.

    Args:
        plan: A few jobs.
        executor: Runs them.
        cache: Observations of earlier runs.
        judge: Returns the judge of the records whose artifacts are in a store.
    """
    # Not in the project's own runs: a reproduction is no run to compare with.
    with temporary_folder("repro") as folder:
        directory = RunDirectory(folder)
        run = Run(plan, directory, executor, cache, judge(directory.blobs))
        records = run.execute()
        yield [
            judge_job(job, StoredJob(record, directory.blobs))
            for job, record in zip(plan.jobs, records, strict=True)
        ]


def load_jobs(plan: Plan, directory: RunDirectory) -> list[ObservedJob]:
    """Return the jobs of a plan as a run recorded them.

    Args:
        plan: A few jobs.
        directory: Directory of the run.

    Raises:
        UsageError: If the run has no record of a job, or one of another version of the case.
    """
    run = load_run(directory)
    known = {(record.case, record.cell): record for record in run.records}
    found = []
    for job in plan.jobs:
        record = known.get(job.id)
        label = f"{directory.path}: {job.case.id} on {job.planned.cell.id}"
        if record is None:
            raise UsageError(f"{label} is not in this run; leave out --run")
        # The file is written from the present case, which the recorded result may not be of.
        if (record.case_hash, record.cell_hash) != (job.case.content_hash, job.planned.cell_hash):
            raise UsageError(f"{label} has changed after this run; leave out --run to run it again")
        found.append(judge_job(job, StoredJob(record, run.blobs)))
    return found


def find_golden_span(job: Job, observation: Observation) -> str:
    """Return the releases whose golden agrees with an observation; empty if none does.

    Args:
        job: The job.
        observation: Its observation.
    """
    store = GoldenStore(job.case.families)
    try:
        golden = store.lookup(job.case, name_golden_variant(job), job.planned.release)
    # The span is only mentioned in a report: a damaged golden is reported elsewhere.
    except GoldenError:
        return ""
    if golden is None or golden.tainted or not golden.exact:
        return ""
    agreement, _ = compare_golden(observation, golden, Tolerance.of(job.case))
    return "" if agreement is Agreement.BEYOND else golden.span


def judge_job(job: Job, side: StoredJob) -> ObservedJob:
    """Return a job judged only by the reference and the claims of its case.

    Args:
        job: Case and cell.
        side: Its record and artifacts.

    Raises:
        InfrastructureError: If the job could not be run.
        UsageError: If the cell does not support the case.
    """
    record = side.record
    message = record.error.message if record.error is not None else ""
    if record.outcome in {Outcome.INFRA, Outcome.NOT_RUN}:
        raise InfrastructureError(f"{record.case} on {record.cell}: {message}")
    if record.outcome is Outcome.UNSUPPORTED:
        raise UsageError(
            f"{record.case} on {record.cell}: unsupported: {message}; name another cell"
        )
    observation = load_claimed_observation(job.case, record, side.blobs)
    conforms, reasons = judge_conformance(job.case, observation)
    # Probes are not lowered by the harness.
    hlo = load_ir_text(side, "hlo") if job.case.kind == "program" else None
    seen = JudgedObservation(
        observation=observation,
        conformance=conforms,
        reasons=reasons,
        hlo=hlo.text if hlo is not None else "",
        example=_load_example(side),
    )
    return ObservedJob(job=job, seen=seen, side=side)


def _load_example(side: StoredJob) -> str:
    artifacts = side.record.artifacts
    digest = artifacts.get(FALSIFYING) or artifacts.get(EXAMPLE)
    return "" if digest is None else side.blobs.get(digest).decode()
