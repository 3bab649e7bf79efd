"""The verdict cache: judged records of case files whose jobs, cases and goldens are unchanged.

Judging takes a millisecond per job, a minute for all cases on all releases. So the verdicts of all
jobs of a case file in a cell are stored together, under a key of everything that a verdict depends
on: cases, cell, goldens, and this package itself.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from functools import cache
from itertools import groupby
from typing import TYPE_CHECKING

import msgspec

from conformance.cache_folder import CacheFolder
from conformance.corpus.project import PACKAGE
from conformance.engine.cache.blobs import CorruptBlobError
from conformance.engine.input_files import READ_FILES, has_same_inputs
from conformance.files import MALFORMED, stamp_folder
from conformance.golden.layout import list_golden_folders
from conformance.model.record import Record

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from conformance.engine.cache.blobs import BlobStore
    from conformance.engine.job import Job


# Older than the name `VerdictCache`; existing caches have this folder.
FOLDER = "settled"
_LINES = msgspec.json.Decoder(Record)


class VerdictCache:
    """Judged records of whole case files by cell, below the cache folder.

    Args:
        folder: Folder for observations with this kit on this host.
        blobs: Blobs of the cache.
        fresh: Whether cached verdicts are ignored; new ones are stored in any case.
        origin: URL of the shared cache that has the blobs of these records, empty if the local
            cache has them.
        stamps: Stamps of case files, if several caches look up the same jobs.
    """

    def __init__(
        self,
        folder: Path,
        blobs: BlobStore,
        *,
        fresh: bool = False,
        origin: str = "",
        stamps: FileStamps | None = None,
    ) -> None:
        self._entries = CacheFolder(folder)
        self._origin = origin
        self._blobs = blobs
        self._fresh = fresh
        self._stamps = stamps or FileStamps()
        # By run: one process may write several runs, each with its own folder of blobs.
        self._copied: dict[Path, set[str]] = {}

    def take(self, jobs: Sequence[Job], blobs: BlobStore) -> list[Record] | None:
        """Return the judged records of jobs if all are valid, and copy their blobs to a run.

        Args:
            jobs: Jobs of one case file in one cell.
            blobs: The run's blobs.

        Returns:
            A record for each, in their order; None if they must be judged again.

        Raises:
            InfrastructureError: If the run's disk refuses.
        """
        if self._fresh:
            return None
        path = self._path(jobs)
        content = self._entries.read(path)
        if content is None:
            return None
        try:
            records = _LINES.decode_lines(content)
            # Jobs that read the same files are checked once.
            reading = {record.artifacts.get(READ_FILES): record for record in records}
            if not all(has_same_inputs(record, self._blobs) for record in reading.values()):
                return None
            blobs.write_origin(self._origin)
            if not self._origin:
                for name in {name for record in records for name in record.artifacts.values()}:
                    self._copy(name, blobs)
        except MALFORMED:
            return None
        except CorruptBlobError as error:
            self._entries.report_damage(error)
            return None
        # The records are in the order of the jobs that were judged together.
        is_complete = [(record.case, record.cell) for record in records] == [job.id for job in jobs]
        return records if is_complete else None

    def _copy(self, name: str, blobs: BlobStore) -> None:
        """Copy a blob to a run, hashed once: it is not judged again."""
        copied = self._copied.setdefault(blobs.folder, set())
        if name not in copied:
            blobs.adopt(name, self._blobs, trusted=False)
            copied.add(name)

    def put(self, jobs: Sequence[Job], records: Iterable[Record]) -> None:
        """Store the judged records of jobs whose blobs are in the cache."""
        cached = [replace(record, cached=True) for record in records]
        self._entries.write(self._path(jobs), msgspec.json.Encoder().encode_lines(cached))

    def _path(self, jobs: Sequence[Job]) -> Path:
        first = jobs[0].planned
        facts = (_stamp_package(), first.cell.id, first.cell_hash, self._stamps.find(jobs))
        key = hashlib.sha256("\n".join(facts).encode()).hexdigest()[:32]
        return self._entries.folder / key[:2] / f"{key}.jsonl"


class FileStamps:
    """Stamps of the cases of a file and their goldens, remembered for the life of the object.

    Goldens may change between two runs of one process, so each run has its own.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[str, ...], str] = {}

    def find(self, jobs: Sequence[Job]) -> str:
        """Return the stamp of the cases of jobs.

        Args:
            jobs: Jobs of one case file in one cell.
        """
        # By case id: a run has the same cases in each of its cells.
        ids = tuple(job.case.id for job in jobs)
        if ids not in self._known:
            # A case may depend on more than its content, e.g. on settings of its project: its
            # whole description counts.
            facts = [
                *map(stamp_folder, list_golden_folders(job.case for job in jobs)),
                *(repr(job.case) for job in jobs),
            ]
            self._known[ids] = hashlib.sha256("\n".join(facts).encode()).hexdigest()
        return self._known[ids]


def group_by_file(jobs: Iterable[Job]) -> Iterator[list[Job]]:
    """Yield the jobs of each case file in each cell, which are consecutive in a plan."""
    # By file: one entry for a hundred jobs is read faster than a hundred entries.
    for _, group in groupby(jobs, lambda job: (job.planned.cell.id, job.case.file)):
        yield list(group)


@cache
def _stamp_package() -> str:
    """Return a stamp of this package: another version may judge differently."""
    return "".join(
        stamp_folder(folder) for folder in sorted({f.parent for f in PACKAGE.rglob("*.py")})
    )
