"""Runs read back from their directories."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from conformance.corpus.project import relative_to_project
from conformance.engine.run_directory import RUN, CorruptRunError, RunDirectory
from conformance.errors import ConformanceError, UsageError
from conformance.model.record import FactInterner

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
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
