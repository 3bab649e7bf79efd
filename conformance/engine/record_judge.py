"""Judging records: from the stored observation of a job to its verdict, at any time after it."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from conformance.corpus.claims import FILECHECK
from conformance.engine.cache.blobs import CorruptBlobError
from conformance.engine.job import FinishedJob, RecordedJob
from conformance.engine.workers.transcript import load_artifact_value, load_variants, make_error
from conformance.errors import InfrastructureError
from conformance.files import MALFORMED
from conformance.golden.document import GoldenError
from conformance.golden.layout import make_variant_name
from conformance.golden.store import GoldenStore
from conformance.ir.change import IrChanges
from conformance.ir.graph import CROSS_LOWERED, IRS, IrSyntaxError
from conformance.ir.normal.text import VERSION
from conformance.judge.conformance import select_deviations
from conformance.judge.suite_verdict import XFAIL, judge_test
from conformance.judge.verdict import Judgement, judge
from conformance.model.observation import ExpectedError, Observation
from conformance.model.outcome import Outcome, Stage, Verdict
from conformance.model.record import SOURCES, FactInterner, IrRecord, IrStatus, Record
from conformance.worker.frames import escape_surrogates

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from conformance.engine.cache.blobs import BlobStore
    from conformance.engine.job import Executor, Job
    from conformance.model.case import Case, Deviation
    from conformance.model.golden import GoldenEntry
    from conformance.model.value import Value

_ANALYSED: Final = frozenset({*IRS, *CROSS_LOWERED, *SOURCES})
"""Artifacts from which normal forms and facts are computed."""


class ExecutedJob(NamedTuple):
    """A job that was executed, before any judgement.

    Attributes:
        job: Job that was executed.
        record: Its record.
        values: Values of its artifacts as they arrived, so that judging need not read the blobs.
        same_host: See `RecordedJob`.
    """

    job: Job
    record: Record
    values: Mapping[str, Value]
    same_host: bool = True


def execute_jobs(
    executor: Executor, jobs: Iterable[Job], blobs: BlobStore
) -> Iterator[ExecutedJob]:
    """Execute jobs and store their artifacts.

    A job may report anything. If no record can be made of the report, the job is `infra`.

    Args:
        executor: Runs the jobs.
        jobs: Jobs to execute.
        blobs: Receives their artifacts.

    Yields:
        The jobs, in any order.

    Raises:
        InfrastructureError: If the disk refuses.
    """
    # Closed when the caller stops early, which ends the running jobs.
    with contextlib.closing(executor.run(jobs)) as finished_jobs:
        for finished in finished_jobs:
            if isinstance(finished, RecordedJob):
                adopt_artifacts(finished, blobs)
                yield ExecutedJob(finished.job, finished.record, {}, finished.same_host)
                continue
            try:
                record = make_record(finished, blobs)
                # What cannot be written to the results must be found now, not when it is appended.
                msgspec.json.encode(record)
            except InfrastructureError:  # the disk
                raise
            except Exception as error:  # noqa: BLE001 - malformed in a way that no type describes
                record = make_record(make_infra_end(finished.job, error), blobs)
            yield ExecutedJob(finished.job, record, finished.values)


def adopt_artifacts(finished: RecordedJob, blobs: BlobStore) -> None:
    """Take the artifacts of a job that ended on another host into a store.

    Args:
        finished: The job.
        blobs: Receives its artifacts.

    Raises:
        CorruptBlobError: If an artifact is missing or damaged.
        InfrastructureError: If the disk refuses.
    """
    blobs.write_origin(finished.origin)
    for name in finished.record.artifacts.values():
        if name in finished.artifacts:
            # Under the hash of the content, whatever name the other host gave it.
            blobs.put(finished.artifacts[name])
        elif finished.source is not None:
            blobs.adopt(name, finished.source)


def make_infra_end(job: Job, error: Exception) -> FinishedJob:
    """Return a finished job in place of one whose report cannot be recorded or judged."""
    text = f"no record can be made of what the job reported: {type(error).__name__}: {error}"
    cause = make_error("infra", str(escape_surrogates(text)), job)
    return FinishedJob(job=job, outcome=Outcome.INFRA, stage=Stage.EXECUTE, error=cause)


def make_record(finished: FinishedJob, blobs: BlobStore) -> Record:
    """Store the artifacts of a job, analyse its IRs, and return its record, not judged yet.

    Args:
        finished: Finished job with its artifacts.
        blobs: Receives its artifacts.

    Raises:
        InfrastructureError: If the disk refuses.
    """
    return _analyse(store_artifacts(finished, blobs), finished.blobs)


def store_artifacts(finished: FinishedJob, blobs: BlobStore) -> Record:
    """Store the artifacts of a job, and return its record without normal forms and facts.

    Args:
        finished: Finished job with its artifacts.
        blobs: Receives its artifacts.

    Raises:
        InfrastructureError: If the disk refuses.
    """
    job = finished.job
    # The blobs are stored in the order of their names, so that a record has the same bytes in each
    # run.
    return Record(
        case=job.case.id,
        cell=job.planned.cell.id,
        case_hash=job.case.content_hash,
        cell_hash=job.planned.cell_hash,
        outcome=finished.outcome,
        stage=finished.stage,
        error=finished.error,
        artifacts={name: blobs.put(data) for name, data in sorted(finished.blobs.items())},
        seconds={stage: round(seconds, 6) for stage, seconds in finished.seconds.items()},
        max_rss_bytes=finished.max_rss_bytes,
        notes=finished.notes,
    )


def _analyse(record: Record, artifacts: Mapping[str, bytes]) -> Record:
    """Return a record with the current normal forms and facts of its IRs."""
    # A run whose results are cached reads no IR, and the parsers are a quarter of all modules.
    from conformance.engine.ir_analysis import analyse_artifacts  # noqa: PLC0415

    irs, facts = analyse_artifacts(artifacts)
    return replace(record, ir=irs, facts=facts)


def load_observation(
    record: Record, blobs: BlobStore, values: Mapping[str, Value] = {}
) -> Observation:
    """Return the observation of a record, its values decoded.

    Args:
        record: Record of an observed or failed job.
        blobs: Its artifacts.
        values: Values of artifacts that are decoded already.

    Raises:
        CorruptBlobError: If a blob is missing or changed.
        CorruptValueError: If a blob is no value.
    """
    return Observation(
        outcome=record.outcome,
        stage=record.stage,
        error=record.error,
        value=load_artifact_value("value", record.artifacts, blobs, values),
        reference=_load_reference(record.artifacts, blobs, values),
        variants=load_variants(record.artifacts, blobs, values),
        facts=record.facts,
        ir=record.ir,
    )


def load_claimed_observation(
    case: Case, record: Record, blobs: BlobStore, values: Mapping[str, Value] = {}
) -> Observation:
    """Return the observation of a record, with the text of each IR that its case has a claim about.

    An IR that is not understood is left out: a claim about it is not met.

    Args:
        case: Case with the claims.
        record: Record of a job of the case.
        blobs: Its artifacts.
        values: Values of artifacts that are decoded already.

    Raises:
        CorruptBlobError: If a blob is missing or changed.
        CorruptValueError: If a blob is no value.
    """
    from conformance.engine.ir_analysis import render_canonical  # noqa: PLC0415 - see `_analyse`

    texts = {}
    for ir in case.facts.get(FILECHECK, ()):
        if ir in record.artifacts:
            with contextlib.suppress(IrSyntaxError):
                texts[ir] = render_canonical(record, blobs, ir)
    return replace(load_observation(record, blobs, values), texts=texts)


def _load_reference(
    artifacts: Mapping[str, str], blobs: BlobStore, values: Mapping[str, Value]
) -> Value | ExpectedError | None:
    if "raises" not in artifacts:
        return load_artifact_value("reference", artifacts, blobs, values)
    try:
        return msgspec.json.decode(blobs.get(artifacts["raises"]), type=ExpectedError)
    except MALFORMED as error:
        raise CorruptBlobError(f"{artifacts['raises']}: no expected error: {error}") from None


def name_golden_variant(job: Job) -> str:
    """Return the key of the goldens that a job is compared with: the platform and its settings.

    Cells with era dependencies have the plain key. Settings of the case itself are part of the
    case, not of the key.
    """
    # The spellings are keys of goldens: a change would orphan them.
    cell = job.planned.cell
    labels = [f"{name}={value}" for name, value in cell.config]
    labels += [flag.removeprefix("--") for flag in cell.xla_flags]
    labels += [] if cell.deps == "era" else [cell.deps]
    labels += list(cell.pins)
    labels += ["x64"] if cell.x64 and not job.case.x64 else []
    return make_variant_name(cell.platform, labels)


class Judge:
    """Judges records against the goldens in the folders of the cases.

    Args:
        blobs: Artifacts of the records.
    """

    def __init__(self, blobs: BlobStore) -> None:
        self._blobs = blobs
        # Goldens are read once per judge, so a new judge sees goldens that were accepted since.
        self._store = cache(GoldenStore)
        self._facts = FactInterner()

    def judge(
        self,
        job: Job,
        record: Record,
        attempts: Sequence[Record] = (),
        values: Mapping[str, Value] = {},
    ) -> Record:
        """Return a record with its conformance, verdict and reasons.

        A golden that cannot be trusted ends no run: the record is judged without it. If nothing
        gates then, the verdict is `infra`, with the problem as its reason.

        Args:
            job: Job of the record.
            record: The record of the job.
            attempts: Records of other attempts of the same job.
            values: Values of artifacts of the record that are decoded already.

        Raises:
            CorruptBlobError: If a blob of the record is missing or changed.
        """
        others = [load_observation(attempt, self._blobs) for attempt in attempts]
        if job.case.kind == "test":
            judgement = self._judge_test(job, record, others)
        else:
            record = self._update_forms(record)
            # Without an observation there is nothing to compare, and the cell may have no release.
            golden, problem = self._find_golden(job) if record.outcome.observed else (None, "")
            observation = load_claimed_observation(job.case, record, self._blobs, values)
            cell = job.planned
            judgement = judge(
                job.case, cell.release, cell.cell.platform, cell.versions, observation, golden,
                attempts=others,
            )  # fmt: skip
            # A crash or a deviation is unexpected with any golden, and a bad one must not hide it.
            if problem and judgement.verdict.gates:
                judgement = replace(judgement, reasons=(*judgement.reasons, problem))
            elif problem:
                judgement = replace(judgement, verdict=Verdict.INFRA, reasons=(problem,))
            irs = self._compare_irs(record, judgement, golden)
            record = replace(record, facts=self._facts.intern(record), ir=irs)
        return replace(
            record,
            conformance=judgement.conformance,
            verdict=judgement.verdict,
            reasons=judgement.reasons,
            attempts=1 + len(attempts),
        )

    def expects_golden(self, job: Job) -> bool:
        """Return whether a job must equal a golden that its process survives."""
        if job.case.kind == "test" or "jax" not in job.planned.versions:
            return False
        golden, _ = self._find_golden(job)
        return golden is not None and golden.outcome in {Outcome.OK, Outcome.RAISED}

    def _judge_test(self, job: Job, record: Record, others: Sequence[Observation]) -> Judgement:
        """Judge a test of a suite, which has no golden."""
        versions = job.planned.versions
        deviations: Sequence[Deviation] = ()
        if release := versions.get("jax"):  # a cell that cannot be provided may have none
            deviations = select_deviations(job.case, release, job.planned.cell.platform, versions)
        return judge_test(
            load_observation(record, self._blobs),
            declared=XFAIL in record.artifacts,
            deviations=deviations,
            attempts=others,
        )

    def _update_forms(self, record: Record) -> Record:
        """Return a record with the current version of the normal forms of its IRs."""
        if all(ir.version == VERSION for ir in record.ir.values()):
            return record
        texts = {
            name: self._blobs.get(blob)
            for name, blob in record.artifacts.items()
            if name in _ANALYSED
        }
        return _analyse(record, texts)

    def _compare_irs(
        self, record: Record, judgement: Judgement, golden: GoldenEntry | None
    ) -> dict[str, IrRecord]:
        """Return the IRs of a record, each compared with its golden."""
        from conformance.engine.ir_analysis import (  # noqa: PLC0415 - see `_analyse`
            diff_canonical,
            render_canonical,
        )

        irs: dict[str, IrRecord] = {}
        known: dict[tuple[str, str], IrChanges] = {}
        for ir, ir_record in record.ir.items():
            status = judgement.ir.get(ir, IrStatus.UNKNOWN)
            differing = IrChanges()
            if status is IrStatus.CHANGED and golden is not None:
                recorded = golden.ir[ir]
                # The same change often occurs on every platform: it is analysed once.
                pair = (recorded.canonical, ir_record.canonical)
                if pair not in known:
                    seen = render_canonical(record, self._blobs, ir)
                    known[pair] = diff_canonical(recorded.text, seen)
                differing = known[pair]
            irs[ir] = msgspec.structs.replace(
                ir_record, status=status, changes=differing.changes, begins=differing.begins
            )
        return irs

    def rejudge(self, job: Job, record: Record) -> Record:
        """Return a record of an earlier run, judged by the current goldens.

        A flaky record stays flaky: only one of its attempts is stored.

        Args:
            job: Job of the record.
            record: Its final record.

        Raises:
            CorruptBlobError: If a blob of the record is missing or changed.
        """
        if record.verdict is Verdict.FLAKY:
            return record
        return replace(self.judge(job, record), attempts=record.attempts)

    def _find_golden(self, job: Job) -> tuple[GoldenEntry | None, str]:
        """Return the golden of a job, and the problem with it, empty if there is none."""
        try:
            entry = self.store(job).lookup(job.case, name_golden_variant(job), job.planned.release)
        except GoldenError as error:
            return None, str(error)
        return entry, ""

    def store(self, job: Job) -> GoldenStore:
        """Return the goldens of a job's case, and of its neighbours."""
        return self._store(job.case.families)
