"""A recorded job with the store of its artifacts."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from conformance.ir.graph import CROSS_LOWERED, IRS, kind_of_artifact
from conformance.model.value import decode_value

if TYPE_CHECKING:
    from conformance.engine.cache.blobs import BlobStore
    from conformance.model.record import Record
    from conformance.model.value import Value


class StoredJob(NamedTuple):
    """A recorded job with the store of its artifacts."""

    record: Record
    blobs: BlobStore


def load_value(side: StoredJob) -> Value:
    """Return the value of a job that has one.

    Raises:
        CorruptBlobError: If its blob is missing or changed.
        CorruptValueError: If it is no value.
    """
    return decode_value(side.blobs.get(side.record.artifacts["value"]))


def select_informative_irs(*records: Record) -> tuple[str, ...]:
    """Return the IRs of jobs that are worth comparing.

    These are the IRs of the cell itself. An IR lowered for another platform is added if all jobs
    have it, and if it differs from the cell's own StableHLO in at least one of them.

    Args:
        records: Records of the jobs.
    """
    # A difference that repeats the cell's own would be shown three more times.
    crossed = [
        ir
        for ir in CROSS_LOWERED
        if all(ir in record.artifacts for record in records)
        and any(
            record.artifacts[ir] != record.artifacts.get(kind_of_artifact(ir)) for record in records
        )
    ]
    return (*IRS, *crossed)
