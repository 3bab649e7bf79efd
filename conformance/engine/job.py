"""Jobs, finished jobs, and the protocol of executors."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, field, replace
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from conformance.laws.launch import make_law

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Mapping

    from conformance.cells.cell import Cell
    from conformance.engine.cache.blobs import BlobStore
    from conformance.model.case import Case
    from conformance.model.outcome import Outcome, Stage
    from conformance.model.record import ErrorInfo, Record
    from conformance.model.value import Value


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedCell:
    """A cell with the facts that a plan needs before anything runs.

    Attributes:
        cell: Cell of the plan.
        versions: Version of every package of its lock, by normalised name.
        lock_hash: Hash of the lock; for a `path:` cell, of the installed packages.
        cell_hash: Hash of everything except the case that an observation depends on; empty if
            that is unknown, and nothing is cached then.
        failure: Why the cell cannot be provided, empty if it can; its jobs are `infra`.
        missing: Why this host cannot serve the cell, empty if it can; its jobs are `unsupported`.
        overlay: Folder of packages in addition to those of the lock, empty for none.
        layer: Hash of the lock that the overlay was made from.
        sources: Folder with the sources of a package at a commit, empty for none.
        note: Note for readers of its results, empty for none.
        passed: Variables that the user passes on to the cell with `pass-env`, by name.
    """

    cell: Cell
    versions: Mapping[str, str]
    lock_hash: str
    cell_hash: str
    failure: str = ""
    missing: str = ""
    overlay: str = ""
    layer: str = ""
    sources: str = ""
    note: str = ""
    passed: Mapping[str, str] = field(default_factory=dict)

    @property
    def release(self) -> str:
        """Version of jax in the cell."""
        return self.versions["jax"]

    @property
    def python_path(self) -> str:
        """Folders for PYTHONPATH: the sources replace what is installed, so they come first."""
        return os.pathsep.join(filter(None, (self.sources, self.overlay)))


# Compared by identity, because a case has dictionaries, which cannot be hashed; `id` is the key.
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Job:
    """One case in one cell.

    Attributes:
        case: Case to run.
        planned: Cell to run it in.
        alone: Whether the job runs in a separate process even if jobs of its cell share one.
        may_share: Whether it may run in the process of other jobs of its file: its result must
            equal a golden within the tolerance, and it runs again alone if it does not.
        measure: Settings of a measurement, which replaces the observation; see
            `conformance.worker.measuring`.
    """

    case: Case
    planned: PlannedCell
    alone: bool = False
    may_share: bool = False
    measure: Mapping[str, Any] | None = None

    @property
    def id(self) -> tuple[str, str]:
        """Case id and cell id, unique within a run."""
        return (self.case.id, self.planned.cell.id)

    @property
    def x64(self) -> bool:
        """Whether 64-bit types are on, by the case or by the cell."""
        return self.case.x64 or self.planned.cell.x64

    def request(self) -> dict[str, Any]:
        """Return the request that the worker gets, as plain data."""
        case, cell = self.case, self.planned.cell
        return {
            "file": str(case.file),
            "family": case.family,
            "name": case.name,
            "kind": case.kind,
            "params": dict(case.params),
            "devices": case.devices or cell.devices,
            "processes": cell.place.processes,
            # XLA takes the last of two equal flags: the flags of the case come last.
            "xla_flags": [*cell.place.xla_flags, *cell.xla_flags, *case.xla_flags],
            "config": {**cell.settings, **case.config},
            "x64": self.x64,
            "same_as": list(case.same_as),
            **({"law": make_law(case)} if case.given else {}),
            **({"measure": dict(self.measure)} if self.measure else {}),
            "alone": self.alone,
            "may_share": self.may_share,
            "timeout": case.timeout,
            "memory": case.memory,
            "observation_mb": case.observation_mb,
            "cell": {
                "id": cell.id,
                "release": self.planned.release,
                "platform": cell.platform,
                "versions": dict(self.planned.versions),
                "topology": dict(cell.place.topology),
            },
        }


def make_job_key(job: Job, kit_hash: str) -> str:
    """Return the cache key of a job; jobs with the same key make the same observation.

    Args:
        job: Job to look up.
        kit_hash: Hash of the kit and the worker, which take part in every observation.

    Returns:
        32 hexadecimal digits.
    """
    # The file is covered by the content of the case, the cell by its hash: another checkout of the
    # same case has the same key. Sharing a process must not change an observation.
    omitted = {"file", "cell", "alone", "may_share"}
    request = {name: value for name, value in job.request().items() if name not in omitted}
    facts = (kit_hash, job.case.content_hash, job.planned.cell_hash, job.planned.cell.id, request)
    return hashlib.sha256(msgspec.json.encode(facts, order="sorted")).hexdigest()[:32]


def relocate_error(error: ErrorInfo | None, case: Case) -> ErrorInfo | None:
    """Return an error located in the file of this checkout; the job may have run in another.

    Args:
        error: Error of a recorded job, None for none.
        case: Case of the job.
    """
    if error is None or not error.where:
        return error
    if PurePath(error.where.rpartition(":")[0]).parts[-2:] != case.file.parts[-2:]:
        return error  # in a user's function, which the case file only names
    return replace(error, where=f"{case.file}:{error.where.rpartition(':')[2]}")


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedJob:
    """A job that ended, before any judgement.

    Attributes:
        job: Job that has ended.
        outcome: Outcome of the job.
        stage: Last stage reached.
        error: Error, or the reason of `unsupported` and `infra`; None for none.
        blobs: Artifacts by name: `value` and a reference value as safetensors, the rest text.
        values: The values among the artifacts, so that judging need not decode them.
        seconds: Wall-clock seconds by stage, and `job` for the whole.
        max_rss_bytes: Peak resident memory of the job's process.
        killed: Whether its process was ended by a SIGKILL that no limit of the job sent: the host
            was out of memory, another process sent it, or the job itself.
        refused: Whether this host had no process, descriptor or memory left to start the job.
        notes: Notes on the execution, independent of the verdict.
    """

    job: Job
    outcome: Outcome
    stage: Stage
    error: ErrorInfo | None = None
    blobs: Mapping[str, bytes] = field(default_factory=dict)
    values: Mapping[str, Value] = field(default_factory=dict)
    seconds: Mapping[str, float] = field(default_factory=dict)
    max_rss_bytes: int = 0
    killed: bool = False
    refused: bool = False
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedJob:
    """A job that ended on another host, which has made its record.

    Attributes:
        job: Job that has ended.
        record: Its record, not judged.
        artifacts: Artifacts by digest that came with the record.
        source: Store with its artifacts, None if they are elsewhere.
        origin: URL of the shared cache that has its artifacts, empty if they are elsewhere.
        same_host: Whether another run on this host would observe the same: its processor is equal.
    """

    job: Job
    record: Record
    artifacts: Mapping[str, bytes] = field(default_factory=dict)
    source: BlobStore | None = None
    origin: str = ""
    same_host: bool = True


class Executor(Protocol):
    """Runs jobs somewhere; its callers do not know where."""

    def run(self, jobs: Iterable[Job]) -> Generator[FinishedJob | RecordedJob]:
        """Run jobs and yield each as it ends, in any order.

        Args:
            jobs: The jobs; each is yielded exactly once, even if its worker dies.

        Yields:
            The finished jobs. Closing the iterator ends everything that is still running.
        """
        ...

    @property
    def identities(self) -> Mapping[str, Mapping[str, Any]]:
        """Identities that the workers reported, by cell id."""
        ...
