"""Judging records: from what is stored of a job to its verdict, now or long after the run."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec

from conformance.golden.layout import variant_name
from conformance.golden.store import GoldenStore
from conformance.ir.facts import facts
from conformance.judge.verdict import judge
from conformance.model.codec import decode_value
from conformance.model.observation import ExpectedError, Observation
from conformance.model.record import Record

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from conformance.engine.blobs import BlobStore
    from conformance.engine.job import Finished, Job
    from conformance.model.value import Value

GATED_TEXT = "hlo"


def record_of(finished: Finished, blobs: BlobStore) -> Record:
    """Store what a job produced and return its record, not judged yet.

    Args:
        finished: The job.
        blobs: Where its artifacts go.

    Returns:
        The record.

    Raises:
        InfrastructureError: If the disk refuses.
    """
    job = finished.job
    text = finished.blobs.get(GATED_TEXT)
    return Record(
        case=job.case.id,
        cell=job.planned.cell.id,
        case_hash=job.case.content_hash,
        cell_hash=job.planned.cell_hash,
        outcome=finished.outcome,
        stage=finished.stage,
        error=finished.error,
        artifacts={name: blobs.put(data) for name, data in sorted(finished.blobs.items())},
        facts=facts(text.decode()) if text else {},
        seconds={stage: round(seconds, 4) for stage, seconds in finished.seconds.items()},
        max_rss_bytes=finished.max_rss_bytes,
    )


def observation_of(record: Record, blobs: BlobStore) -> Observation:
    """Return what a record stands for, its values decoded.

    Raises:
        CorruptBlobError: If a blob is missing or changed.
        CorruptValueError: If a blob is no value.
    """
    value = record.artifacts.get("value")
    return Observation(
        outcome=record.outcome,
        stage=record.stage,
        error=record.error,
        value=decode_value(blobs.get(value)) if value else None,
        reference=_reference(record.artifacts, blobs),
        facts=record.facts,
    )


def _reference(artifacts: Mapping[str, str], blobs: BlobStore) -> Value | ExpectedError | None:
    if "raises" in artifacts:
        return msgspec.json.decode(blobs.get(artifacts["raises"]), type=ExpectedError)
    if "reference" in artifacts:
        return decode_value(blobs.get(artifacts["reference"]))
    return None


def variant(job: Job) -> str:
    """Return the key of the goldens that a job is compared with: platform and what sets it apart.

    Era cells have the plain key; what a case sets itself is part of the case.
    """
    cell = job.planned.cell
    labels = [f"{name}={value}" for name, value in cell.config]
    labels += [flag.removeprefix("--") for flag in cell.xla_flags]
    labels += [] if cell.deps == "era" else [cell.deps]
    labels += list(cell.pins)
    labels += ["x64"] if cell.x64 and not job.case.x64 else []
    return variant_name(cell.platform, labels)


class Judge:
    """Judges records against the goldens beside the cases."""

    def __init__(self, blobs: BlobStore) -> None:
        self._blobs = blobs
        self._stores: dict[Path, GoldenStore] = {}

    def judge(self, job: Job, record: Record, attempts: Sequence[Record] = ()) -> Record:
        """Return a record with its conformance, verdict and reasons.

        Args:
            job: The job.
            record: What came of it.
            attempts: Records of other attempts of the same job.

        Raises:
            GoldenError: If the case's golden is corrupt.
            CorruptBlobError: If a blob of the record is missing or changed.
        """
        planned = job.planned
        judgement = judge(
            job.case,
            planned.release,
            planned.cell.platform,
            planned.versions,
            observation_of(record, self._blobs),
            self.store(job).lookup(job.case, variant(job), planned.release),
            attempts=[observation_of(attempt, self._blobs) for attempt in attempts],
        )
        return replace(
            record,
            conformance=judgement.conformance,
            verdict=judgement.verdict,
            reasons=judgement.reasons,
            attempts=1 + len(attempts),
        )

    def store(self, job: Job) -> GoldenStore:
        """Return the goldens that stand beside a job's case."""
        root = job.case.file.parent.parent
        return self._stores.setdefault(root, GoldenStore(root))
