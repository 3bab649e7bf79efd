"""Runs read back from their directories."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import msgspec

from conformance.corpus.project import relative_to_project
from conformance.engine.run_directory import RUN, CorruptRunError, RunDirectory
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

    from conformance.engine.blobs import BlobStore
    from conformance.model.record import Record
    from conformance.model.run import RunInfo


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedRun:
    """A run as it stands in its directory.

    Attributes:
        id: Name of the run.
        info: What `run.json` says.
        records: The finished jobs; of one that was written twice, the last.
        blobs: Its artifacts.
    """

    id: str
    info: RunInfo
    records: tuple[Record, ...]
    blobs: BlobStore

    @classmethod
    def of(cls, directory: RunDirectory, info: RunInfo, records: Iterable[Record]) -> LoadedRun:
        """Return a run of which all is known already."""
        return cls(id=directory.id, info=info, records=tuple(records), blobs=directory.blobs)


def load_run(directory: RunDirectory) -> LoadedRun:
    """Return a run.

    Args:
        directory: Where it is.

    Raises:
        CorruptRunError: If it cannot be read, or is no run's directory.
    """
    info = directory.read_run()
    records = {(record.case, record.cell): record for record in directory.read_records()}
    if not records and not info.plan:
        raise CorruptRunError(f"{directory.path}: expected a run, got a folder without any job")
    shared = FactInterner()
    told = (_told_from(record, info.root, shared) for record in records.values())
    return LoadedRun.of(directory, info, told)


def _told_from(record: Record, root: str, shared: FactInterner) -> Record:
    """Return a record whose error names its file as seen from the project's folder."""
    error, facts = record.error, shared.of(record)
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
    found = sorted(file.parent for file in folder.glob(f"*/{RUN}"))
    if not found:
        raise UsageError(
            f"{folder}: expected the directory of a run, or a folder of them; "
            "`conformance run` makes one"
        )
    return [RunDirectory(path) for path in found]


def load_readable_runs(directories: Sequence[RunDirectory]) -> tuple[list[LoadedRun], list[str]]:
    """Return the runs that can be read, and what is wrong with the others.

    Args:
        directories: Where they are.

    Returns:
        Runs in the given order, and a sentence for each that cannot be read.
    """
    runs, problems = [], []
    for directory in directories:
        try:
            runs.append(load_run(directory))
        except ConformanceError as error:
            problems.append(str(error))
    return runs, problems


def read_evidence(directory: RunDirectory) -> dict[str, Evidence]:
    """Return what was found out about the root causes of a run; nothing where nobody looked.

    Args:
        directory: The run's.

    Raises:
        CorruptRunError: If the file is there and cannot be read.
    """
    content = directory.read_file(EVIDENCE)
    if content is None:
        return {}
    try:
        found = msgspec.json.decode(content, type=tuple[Evidence, ...])
    except MALFORMED as error:
        raise CorruptRunError(
            f"{directory.path / EVIDENCE}: expected what was found out: {str(error).lower()}; "
            f"conformance triage --fresh --run {directory.path} makes it anew"
        ) from None
    return {one.cause: one for one in found}


def add_evidence(
    directory: RunDirectory, found: Evidence, causes: Iterable[str], inform: Callable[[str], None]
) -> None:
    """Add what was found out about a root cause to what is known of the run by then.

    Args:
        directory: The run's.
        found: What was found out; it replaces what was known of its cause.
        causes: Ids of the run's root causes, in order: what is known of others is dropped.
        inform: Receives one line if another process writes it at the moment.

    Raises:
        CorruptRunError: If the file is there and cannot be read.
        InfrastructureError: If the disk refuses.
    """
    file = directory.path / EVIDENCE
    with lock_file(file, inform):
        known = {**read_evidence(directory), found.cause: found}
        text = readable_json(tuple(known[cause] for cause in causes if cause in known))
        write_atomically(file, text + b"\n")


def forget_evidence(directory: RunDirectory) -> None:
    """Remove what was found out before, also where it cannot be read.

    Args:
        directory: The run's.

    Raises:
        InfrastructureError: If the disk refuses.
    """
    file = directory.path / EVIDENCE
    try:
        file.unlink(missing_ok=True)
    except OSError as error:
        raise disk_error(file, error) from None


def read_reproduction(directory: RunDirectory, found: Evidence) -> str:
    """Return the file that shows a root cause, empty where there is none any more.

    Args:
        directory: The run's.
        found: What was found out about the cause.
    """
    if not found.repro:
        return ""
    path = directory.path / found.repro
    try:
        # The file may come from elsewhere: what it names must lie in the directory itself.
        if not path.resolve().is_relative_to(directory.path.resolve()):
            return ""
        return read_regular(path).decode("utf-8", "replace")
    except (OSError, ValueError):  # a null byte in its name
        return ""
