"""Runs as they are added to a store."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec

from conformance.errors import UsageError

if TYPE_CHECKING:
    from conformance.engine.digests import Digest
    from conformance.engine.run_directory import RunDirectory


class _Info(msgspec.Struct):
    """The part of `run.json` that a digest lacks."""

    host: dict[str, Any] = msgspec.field(default_factory=dict)
    versions: dict[str, str] = msgspec.field(default_factory=dict)


class _Job(msgspec.Struct, frozen=True, gc=False):
    """The part of a line of `results.jsonl` that a digest lacks."""

    case: str
    cell: str
    attempts: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreEntry:
    """A run to be added to a store.

    Attributes:
        digest: What is known of its jobs.
        repeated: Case and cell of the jobs that ran several times, and so showed what they show.
        host: Facts of the host.
        versions: Of this project, its kit and the Python it ran on.
    """

    digest: Digest
    repeated: frozenset[tuple[str, str]] = frozenset()
    host: dict[str, Any] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)


def make_entry(directory: RunDirectory, digest: Digest) -> StoreEntry:
    """Return a run as it is added to a store.

    Args:
        directory: Where the run is.
        digest: What is known of its jobs.

    Raises:
        CorruptRunError: If it cannot be read.
        UsageError: If it did not finish: later runs cannot be compared with a part of a run.
    """
    if not digest.finished:
        raise UsageError(
            f"{directory.path}: the run did not end, expected one that did; "
            f"conformance run --resume --run {directory.path}"
        )
    info = directory.read_run_as(_Info)
    jobs = directory.read_records_as(_Job)
    return StoreEntry(
        digest=digest,
        repeated=frozenset((job.case, job.cell) for job in jobs if job.attempts > 1),
        host=info.host,
        versions=info.versions,
    )
