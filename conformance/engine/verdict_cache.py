"""Verdicts that still hold: nothing they were made from has changed since.

`conformance.engine.result_cache` stores observations, which are judged anew by each run. That takes
a millisecond a job, a minute for all cases on all releases. So verdicts are stored as well, those
of all jobs of a case file in a cell together, under a key of everything that a verdict depends on:
cases, cell, goldens, and this package itself.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import replace
from functools import cache
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING

import msgspec

from conformance.cache_folder import CacheFolder
from conformance.corpus.project import PACKAGE
from conformance.engine.blobs import BlobStore, CorruptBlobError
from conformance.engine.input_files import READ_FILES, has_same_inputs
from conformance.files import MALFORMED
from conformance.golden.layout import folder_of
from conformance.model.record import Record

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from conformance.engine.job import Job

FOLDER = "settled"
_LINES = msgspec.json.Decoder(Record)


class VerdictCache:
    """Judged records of whole case files by cell, below the cache folder.

    Args:
        folder: Folder of what was observed with this kit on this host.
        blobs: The blobs of the cache.
        fresh: Whether nothing is taken from it; what is judged is kept all the same.
    """

    def __init__(self, folder: Path, blobs: BlobStore, *, fresh: bool = False) -> None:
        self._entries = CacheFolder(folder)
        self._blobs = blobs
        self._fresh = fresh
        self._cases: dict[str, str] = {}
        self._goldens: dict[Path, str] = {}
        self._given: dict[Path, set[str]] = {}

    def take(self, jobs: Sequence[Job], blobs: BlobStore) -> list[Record] | None:
        """Return the judged records of jobs if all still hold, and give their blobs to a run.

        Args:
            jobs: Those of one case file in one cell.
            blobs: The run's blobs.

        Returns:
            A record for each, in their order; None when they are to be judged anew.

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
            reading = {record.artifacts.get(READ_FILES): record for record in records}
            if not all(has_same_inputs(record, self._blobs) for record in reading.values()):
                return None
            for name in {name for record in records for name in record.artifacts.values()}:
                self._give(name, blobs)
        except MALFORMED:
            return None
        except CorruptBlobError as error:
            self._entries.report_damage(error)
            return None
        whole = [(record.case, record.cell) for record in records] == [job.id for job in jobs]
        return records if whole else None

    def _give(self, name: str, blobs: BlobStore) -> None:
        """Give a blob to a run, hashed once: nobody judges what it holds again."""
        given = self._given.setdefault(blobs.folder, set())
        if name not in given:
            blobs.adopt(name, self._blobs, trusted=False)
            given.add(name)

    def put(self, jobs: Sequence[Job], records: Iterable[Record]) -> None:
        """Keep the judged records of jobs, whose blobs the cache has."""
        kept = [replace(record, cached=True) for record in records]
        self._entries.write(self._path(jobs), msgspec.json.Encoder().encode_lines(kept))

    def _path(self, jobs: Sequence[Job]) -> Path:
        first = jobs[0]
        told = [
            _package(), first.planned.cell.id, first.planned.cell_hash, self._golden(first),
            *map(self._case, jobs),
        ]  # fmt: skip
        key = hashlib.sha256("\n".join(told).encode()).hexdigest()[:32]
        return self._entries.folder / key[:2] / f"{key}.jsonl"

    def _case(self, job: Job) -> str:
        """Return what tells a case from what it was: all that is known of it."""
        if job.case.id not in self._cases:
            self._cases[job.case.id] = hashlib.sha256(repr(job.case).encode()).hexdigest()
        return self._cases[job.case.id]

    def _golden(self, job: Job) -> str:
        folder = folder_of(job.case.families, job.case)
        if folder not in self._goldens:
            self._goldens[folder] = _stamps(folder)
        return self._goldens[folder]


def group_by_file(jobs: Iterable[Job]) -> Iterator[list[Job]]:
    """Yield the jobs of each case file in each cell; both stand together in a plan."""
    for _, group in groupby(jobs, lambda job: (job.planned.cell.id, job.case.file)):
        yield list(group)


@cache
def _package() -> str:
    """Return what changes when this package does: another judge may say something else."""
    return "".join(_stamps(folder) for folder in sorted({f.parent for f in PACKAGE.rglob("*.py")}))


def _stamps(folder: Path) -> str:
    """Return names, sizes and times of the files of a folder, hashed."""
    try:
        with os.scandir(folder) as entries:
            files = sorted(((f.name, f.stat()) for f in entries if f.is_file()), key=itemgetter(0))
    except OSError:
        files = []
    told = "\n".join(f"{name} {stat.st_size} {stat.st_mtime_ns}" for name, stat in files)
    return hashlib.sha256(told.encode()).hexdigest()
