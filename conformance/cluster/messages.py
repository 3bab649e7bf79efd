"""Messages between a run and the nodes of a cluster: msgspec, versioned, never pickled."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from conformance import __version__
from conformance.cells.cell import Cell
from conformance.cells.lock import Lock, get_host
from conformance.cluster.suite_batch import SuiteSpec
from conformance.compression import DecompressionError, compress, decompress
from conformance.corpus.project import hash_code, list_modules
from conformance.engine.job import Job, PlannedCell
from conformance.errors import InfrastructureError
from conformance.files import MALFORMED
from conformance.model.case import Case
from conformance.model.record import Record

VERSION: Final = 3
"""Version of the messages; a change of any struct below is a new version."""
M = TypeVar("M", bound=msgspec.Struct)


class MessageError(InfrastructureError):
    """Bytes that are no message of this version."""


class CellSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A planned cell with its lock; the fields are those of `Cell`, `PlannedCell` and `Lock`."""

    release: str
    python: str
    platform: str
    devices: int
    deps: str
    pins: tuple[str, ...]
    x64: bool
    config: tuple[tuple[str, str], ...]
    xla_flags: tuple[str, ...]
    versions: dict[str, str]
    lock_hash: str
    cell_hash: str
    overlay: str
    layer: str
    note: str
    passed: dict[str, str]
    lock: str
    lock_path: str
    nightly_index: str

    @classmethod
    def of(cls, planned: PlannedCell, lock: Lock) -> CellSpec:
        """Return the specification of a cell that can be provided.

        Args:
            planned: The cell.
            lock: Its lock.
        """
        cell = {name: getattr(planned.cell, name) for name in _CELL_FIELDS}
        return cls(
            **cell, versions=dict(planned.versions), lock_hash=planned.lock_hash,
            cell_hash=planned.cell_hash, overlay=planned.overlay, layer=planned.layer,
            note=planned.note, passed=dict(planned.passed), lock=lock.text,
            lock_path=str(lock.path), nightly_index=lock.nightly_index,
        )  # fmt: skip

    def make_cell(self) -> PlannedCell:
        """Return the planned cell."""
        return PlannedCell(
            cell=Cell(**{name: getattr(self, name) for name in _CELL_FIELDS}),
            **{name: getattr(self, name) for name in _PLANNED_FIELDS},
        )

    def make_lock(self) -> Lock:
        """Return the lock of the cell."""
        return Lock(text=self.lock, path=Path(self.lock_path), nightly_index=self.nightly_index)


_CELL_FIELDS: Final = tuple(field.name for field in fields(Cell) if field.init)
_PLANNED_FIELDS: Final = (
    "versions", "lock_hash", "cell_hash", "overlay", "layer", "note", "passed",
)  # fmt: skip


class JobSpec(msgspec.Struct, frozen=True, array_like=True):
    """A job of a batch.

    Attributes:
        case: The case as it is sent, see `conformance.cluster.requests.shorten`.
        alone: See `Job.alone`.
        may_share: See `Job.may_share`.
        measure: See `Job.measure`.
    """

    case: Case
    alone: bool
    may_share: bool
    measure: Mapping[str, Any] | None

    def make_job(self, planned: PlannedCell, case: Case | None = None) -> Job:
        """Return the job on this node.

        Args:
            planned: Cell of the job.
            case: Its case with the file on this node, None for the case as it was sent.
        """
        return Job(
            case=case or self.case, planned=planned, alone=self.alone, may_share=self.may_share,
            measure=self.measure,
        )  # fmt: skip

    @classmethod
    def encode(cls, job: Job, case: Case) -> msgspec.Raw:
        """Return the bytes of the specification of a job.

        Args:
            job: The job.
            case: Its case as it is sent.
        """
        return msgspec.Raw(_ENCODER.encode(cls(case, job.alone, job.may_share, job.measure)))


class ContentPlace(msgspec.Struct, frozen=True, kw_only=True):
    """The place where a node puts artifacts for the run.

    Attributes:
        folder: Cache folder of the run. A node that shares its file system puts them there.
        token: Name and content of a file in the folder, which shows a node that it is the same.
        url: URL of the shared cache that the run writes, empty for none. A node that does not share
            the file system puts artifacts there.
    """

    folder: str
    token: str
    url: str = ""


class BatchRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A batch of jobs of one cell.

    Attributes:
        key: Key of the batch, unique among all runs.
        topic: Topic of the events with its records.
        cell: The cell.
        jobs: The jobs, in order: each a `JobSpec`, which is the same for many cells and encoded
            once.
        files: Content of the files next to the cases, by path in the run's file system.
        content: Place of artifacts.
        spawn: Whether each job gets a fresh interpreter.
        require_platform: Whether a missing accelerator is a fault of the host.
        in_place: Whether the jobs need more files than these, where the run has them.
        suite: Suite of the jobs, None if they are cases.
    """

    key: str
    topic: str
    cell: CellSpec
    jobs: tuple[msgspec.Raw, ...]
    files: dict[str, bytes]
    content: ContentPlace
    spawn: bool = False
    require_platform: bool = False
    in_place: bool = False
    suite: SuiteSpec | None = None

    def decode_jobs(self) -> list[JobSpec]:
        """Return the jobs, in order."""
        decoder = _make_decoder(JobSpec)
        return [decoder.decode(job) for job in self.jobs]


class JobReport(msgspec.Struct, frozen=True, array_like=True):
    """A finished job.

    Attributes:
        record: Its record, not judged.
        artifacts: Artifacts by digest, if the node has no place for them that the run can read.
        uploaded: Whether they are in the shared cache.
    """

    record: Record
    artifacts: dict[str, bytes] = {}
    uploaded: bool = False


class BatchEnd(msgspec.Struct, frozen=True, kw_only=True):
    """The end of a batch.

    Attributes:
        refusal: Why the node runs no job of this cell, empty if it does.
        lacks_accelerator: Whether the node refuses because it lacks an accelerator.
        broken: Whether the node can run no job at all, e.g. because its disk is full.
        cells: Ids of the cells with a warm worker on the node.
        identity: Identity that the worker of the cell reported.
        started: Number of workers of the cell that were started.
    """

    refusal: str = ""
    lacks_accelerator: bool = False
    broken: bool = False
    cells: tuple[str, ...] = ()
    identity: dict[str, Any] = {}
    started: int = 0


class BatchUpdate(msgspec.Struct, frozen=True, kw_only=True):
    """Jobs of a batch that finished after the previous update.

    Attributes:
        key: Key of the batch.
        jobs: The jobs.
        end: The end of the batch, None while it is running.
    """

    key: str
    jobs: tuple[JobReport, ...] = ()
    end: BatchEnd | None = None


class NodeQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """A question about a node.

    Attributes:
        content: Place of artifacts, which the node may see.
    """

    content: ContentPlace


class NodeFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Facts of a node.

    Attributes:
        harness: Version and hash of the harness, see `describe_harness`.
        host: System and architecture, see `conformance.cells.lock.get_host`.
        machine: Id of the running kernel, the same for all nodes on a machine.
        processor: Hash of the host facts that may change an observation.
        slots: Batches at the same time.
        accelerators: Platforms with an accelerator in the machine.
        resources: Names of the resources that the Dask worker was started with, e.g. `GPU`.
        shares_files: Whether the node sees the cache folder of the run.
    """

    harness: str
    host: str
    machine: str
    processor: str
    slots: int
    accelerators: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    shares_files: bool = False


@cache
def describe_harness() -> str:
    """Return the version of the harness and the hash of its code."""
    return f"{__version__} ({hash_code(list_modules())})"


def find_node_problem(facts: NodeFacts) -> str:
    """Return why a node cannot run jobs of this process, empty if it can.

    Args:
        facts: Facts of the node.
    """
    if facts.harness != describe_harness():
        return f"has jax-conformance {facts.harness}, expected {describe_harness()}"
    if facts.host != get_host():
        return f"is {facts.host}, expected {get_host()}, because values may differ"
    return ""


def encode(message: msgspec.Struct) -> bytes:
    """Return the bytes of a message: a line with its version, type and digest, then its fields."""
    body = compress(_ENCODER.encode(message))
    return b"%s %s\n%s" % (_make_head(type(message)), _hash(body), body)


def decode(content: bytes, kind: type[M]) -> M:
    """Return the message in some bytes.

    Args:
        content: The bytes.
        kind: Expected type of the message.

    Raises:
        MessageError: If they are no message of this version and type, or are damaged.
    """
    line, _, body = bytes(content).partition(b"\n")
    head, _, digest = line.rpartition(b" ")
    if head != _make_head(kind):
        raise MessageError(
            f"got a message that begins with {line[:80]!r}, expected {_make_head(kind).decode()!r}"
        )
    if digest != _hash(body):
        raise MessageError(f"damaged message {kind.__name__}: its digest does not match")
    try:
        message: M = _make_decoder(kind).decode(decompress(body))
    except (DecompressionError, *MALFORMED) as error:
        raise MessageError(f"malformed message {kind.__name__}: {error}") from None
    return message


def _make_head(kind: type[msgspec.Struct]) -> bytes:
    return f"jax-conformance message {VERSION} {kind.__name__}".encode()


def _hash(body: bytes) -> bytes:
    return hashlib.blake2b(body, digest_size=16).hexdigest().encode()


def _encode_path(value: Any) -> str:
    if isinstance(value, Path):
        return str(value)
    raise TypeError(f"{type(value).__name__} is not part of a message")


_ENCODER: Final = msgspec.msgpack.Encoder(enc_hook=_encode_path)


@cache
def _make_decoder(kind: type[M]) -> msgspec.msgpack.Decoder[M]:
    return msgspec.msgpack.Decoder(kind, dec_hook=lambda wanted, value: wanted(value))
