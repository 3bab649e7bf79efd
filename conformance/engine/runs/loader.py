"""Runs read back from their directories, with the results of triage in `evidence.json`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import msgspec

from conformance.corpus.project import relative_to_project
from conformance.engine.runs.directory import RUN, CorruptRunError, RunDirectory
from conformance.errors import ConformanceError, UsageError
from conformance.files import (
    MALFORMED,
    disk_error,
    read_regular,
    readable_json,
    write_atomically,
)
from conformance.locking import lock_file
from conformance.model.record import FactInterner
from conformance.model.run_files import EVIDENCE, Evidence

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from conformance.engine.cache.blobs import BlobStore
    from conformance.model.record import Record
    from conformance.model.run import RunInfo


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedRun:
    """A run as stored in its directory.

    Attributes:
        id: Name of the run.
        info: Content of `run.json`.
        records: Records of the finished jobs; the last one of each job.
        blobs: Artifacts of the jobs.
    """

    id: str
    info: RunInfo
    records: tuple[Record, ...]
    blobs: BlobStore

    @classmethod
    def of(cls, directory: RunDirectory, info: RunInfo, records: Iterable[Record]) -> LoadedRun:
        """Return a run whose content is already in memory."""
        return cls(id=directory.id, info=info, records=tuple(records), blobs=directory.blobs)


def load_run(directory: RunDirectory) -> LoadedRun:
    """Load a run.

    Args:
        directory: Directory of the run.

    Raises:
        CorruptRunError: If it cannot be read, or is no run directory.
    """
    info = directory.read_run()
    records = {(record.case, record.cell): record for record in directory.read_records()}
    if not records and not info.plan:
        raise CorruptRunError(f"{directory.path}: expected a run, got a folder without any job")
    # A run has tens of thousands of records, and most facts occur in several of them.
    shared = FactInterner()
    relative = (_relativise(record, info.root, shared) for record in records.values())
    return LoadedRun.of(directory, info, relative)


def _relativise(record: Record, root: str, shared: FactInterner) -> Record:
    """Return a record whose error names its file relative to the project."""
    # Runs of different checkouts must have equal errors.
    error, facts = record.error, shared.intern(record)
    if error is not None:
        where = relative_to_project(error.where, record.case, root)
        error = error if where == error.where else replace(error, where=where)
    if error is record.error and facts is record.facts:
        return record
    return replace(record, error=error, facts=facts)


def find_runs(folder: Path) -> list[RunDirectory]:
    """Return the runs of a folder, the oldest first; the folder itself may be a run.

    Args:
        folder: A run directory, or a folder of run directories.

    Raises:
        UsageError: If there is none.
    """
    if (folder / RUN).exists():
        return [RunDirectory(folder)]
    # Names of runs sort in the order of their start.
    found = sorted(file.parent for file in folder.glob(f"*/{RUN}"))
    if not found:
        raise UsageError(
            f"{folder}: expected the directory of a run, or a folder of them; "
            "`conformance run` makes one"
        )
    return [RunDirectory(path) for path in found]


def load_readable_runs(directories: Sequence[RunDirectory]) -> tuple[list[LoadedRun], list[str]]:
    """Load the runs that can be read.

    Args:
        directories: Directories of the runs.

    Returns:
        Runs in the given order, and a message about each run that cannot be read.
    """
    runs, problems = [], []
    for directory in directories:
        try:
            runs.append(load_run(directory))
        except ConformanceError as error:
            problems.append(str(error))
    return runs, problems


def read_evidence(directory: RunDirectory) -> dict[str, Evidence]:
    """Return the results of triage of a run by cause id, empty if it was not triaged.

    Args:
        directory: Directory of the run.

    Raises:
        CorruptRunError: If the file exists and cannot be read.
    """
    content = directory.read_file(EVIDENCE)
    if content is None:
        return {}
    try:
        found = msgspec.json.decode(content, type=tuple[Evidence, ...])
    except MALFORMED as error:
        raise CorruptRunError(
            f"{directory.path / EVIDENCE}: expected results of triage: {str(error).lower()}; "
            f"conformance triage --fresh --run {directory.path} writes it again"
        ) from None
    return {entry.cause: entry for entry in found}


def add_evidence(
    directory: RunDirectory, found: Evidence, causes: Iterable[str], inform: Callable[[str], None]
) -> None:
    """Add the evidence of a root cause to the file of a run.

    Args:
        directory: Directory of the run.
        found: The evidence; it replaces earlier evidence of its cause.
        causes: Ids of the root causes of the run, in order. Evidence of others is dropped.
        inform: Receives one line if another process writes it at the moment.

    Raises:
        CorruptRunError: If the file exists and cannot be read.
        InfrastructureError: If the disk refuses.
    """
    file = directory.path / EVIDENCE
    # Two triages of a run may find evidence of different causes at the same time.
    with lock_file(file, inform):
        known = {**read_evidence(directory), found.cause: found}
        text = readable_json(tuple(known[cause] for cause in causes if cause in known))
        write_atomically(file, text + b"\n")


def forget_evidence(directory: RunDirectory) -> None:
    """Delete the evidence of a run, even if it cannot be read.

    Args:
        directory: Directory of the run.

    Raises:
        InfrastructureError: If the disk refuses.
    """
    file = directory.path / EVIDENCE
    try:
        file.unlink(missing_ok=True)
    except OSError as error:
        raise disk_error(file, error) from None


def read_reproduction(directory: RunDirectory, found: Evidence) -> str:
    """Return the reproduction of a root cause, empty if there is none.

    Args:
        directory: Directory of the run.
        found: Evidence of the cause.
    """
    if not found.repro:
        return ""
    path = directory.path / found.repro
    try:
        # Untrusted input: a path may not lead out of the directory.
        if not path.resolve().is_relative_to(directory.path.resolve()):
            return ""
        return read_regular(path).decode("utf-8", "replace")
    except (OSError, ValueError):  # a null byte in its name
        return ""
