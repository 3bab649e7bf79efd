"""The result cache: observations of jobs that have not changed since they ran, and verdicts.

`ResultCache` stores observations, which every run judges again. That takes a millisecond per
job, a minute for all cases on all releases. So `VerdictCache` stores verdicts as well, those of all
jobs of a case file in a cell together, under a key of everything that a verdict depends on: cases,
cell, goldens, and this package itself.
"""

from __future__ import annotations

import hashlib
import os
import platform
from dataclasses import replace
from functools import cache
from itertools import groupby
from operator import itemgetter
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

import msgspec

from conformance.cache_folder import CacheFolder
from conformance.corpus.project import PACKAGE, hash_code
from conformance.engine.blobs import BlobStore, CorruptBlobError
from conformance.engine.input_files import READ_FILES, has_same_inputs
from conformance.engine.job import make_job_key
from conformance.engine.transcript import was_cut_short
from conformance.errors import InfrastructureError
from conformance.files import MALFORMED, disk_error
from conformance.golden.layout import LARGE_FOLDER, golden_folder
from conformance.model.outcome import Outcome
from conformance.model.record import Record

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from conformance.engine.job import Job
    from conformance.model.case import Case
    from conformance.model.record import ErrorInfo


CACHED = frozenset({Outcome.OK, Outcome.RAISED, Outcome.UNSUPPORTED})
"""Outcomes worth keeping: the others may be the host's fault, and are seen again."""
ENDED = frozenset({Outcome.CRASHED, Outcome.TIMED_OUT})
"""Outcomes of tests worth keeping besides."""
FOLDER = "settled"
_LINES = msgspec.json.Decoder(Record)


class ResultCache:
    """Finished jobs by key, with their blobs, below the cache folder.

    Args:
        folder: Cache folder.
        fresh: Whether nothing is taken from the cache; results are kept all the same.
    """

    def __init__(self, folder: Path, *, fresh: bool = False) -> None:
        self._fresh = fresh
        place = f"{hash_kit()}-{hash_host()}"
        self._entries = CacheFolder(folder / "results" / place)
        self.blobs = BlobStore(folder / "blobs")
        self.verdicts = VerdictCache(folder / FOLDER / place, self.blobs, fresh=fresh)

    def take(self, job: Job, blobs: BlobStore) -> Record | None:
        """Return the record of the same job run before, and give its blobs to a run.

        Args:
            job: The job.
            blobs: The run's blobs.

        Returns:
            The record with its judgement of then, marked as cached; None when there is none, or
            it or its blobs cannot be read: then the job runs again.

        Raises:
            InfrastructureError: If the run's disk refuses.
        """
        if self._fresh:
            return None
        content = self._entries.read(self._path(job))
        if content is None:
            return None
        try:
            record = msgspec.json.decode(content, type=Record)
        except MALFORMED:
            return None
        if not has_same_inputs(record, self.blobs):
            return None
        try:
            # Hashed: judging reads values alone, and a damaged IR would be found by `accept`.
            for name in record.artifacts.values():
                blobs.adopt(name, self.blobs, trusted=False)
        except CorruptBlobError as error:
            self._entries.report_damage(error)
            self.forget(record)
            return None
        return replace(record, error=_here(record.error, job.case), cached=True)

    def forget(self, record: Record) -> None:
        """Drop the blobs of a record that turned out to be damaged."""
        try:
            self.blobs.drop_broken(record.artifacts.values())
        except OSError as error:
            self._entries.report_unwritable(disk_error(self.blobs.folder, error))

    def drop(self, job: Job) -> None:
        """Forget what is kept of a job: it does not do the same each time."""
        path = self._path(job)
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            self._entries.report_unwritable(disk_error(path, error))

    def put(
        self, job: Job, record: Record, run_blobs: BlobStore, *, expected: bool = False
    ) -> bool:
        """Keep a finished job, unless its outcome may be the host's fault.

        Args:
            job: The job.
            record: What came of it.
            run_blobs: The run's blobs.
            expected: Whether the case or its golden say that it ends so: then a crash is no chance.

        Returns:
            Whether it is kept; a disk that refuses is logged, and ends no run.
        """
        cell = job.planned.cell
        if record.notes:
            return False  # what is told of it is to be seen again: that it is near its timeout
        if (
            not _is_worth_keeping(job, record, expected=expected)
            or cell.interpreter is not None
            or cell.place.real
        ):
            return False  # what a user's environment, or an accelerator, does is not known by id
        try:
            if was_cut_short(record.artifacts, run_blobs):
                return False
            for name in record.artifacts.values():
                self.blobs.adopt(name, run_blobs)
        except CorruptBlobError:
            return False
        except InfrastructureError as error:
            self._entries.report_unwritable(error)
            return False
        return self._entries.write(self._path(job), msgspec.json.encode(record))

    def _path(self, job: Job) -> Path:
        key = make_job_key(job, hash_kit())
        return self._entries.folder / key[:2] / f"{key}.json"


def _is_worth_keeping(job: Job, record: Record, *, expected: bool) -> bool:
    """Say whether an outcome is likely to be the same the next time.

    A test that ends its own process, or never ends, does so in a process that many tests share: it
    is told only when it did so twice, or as it is declared to. But a SIGKILL comes from outside.
    """
    if record.outcome in CACHED:
        return True
    ended = job.case.kind == "test" and record.outcome in ENDED
    crashed = expected and record.outcome is Outcome.CRASHED
    return (ended or crashed) and (record.error is None or record.error.type != "SIGKILL")


def _here(error: ErrorInfo | None, case: Case) -> ErrorInfo | None:
    """Return an error with its place in this very file: another checkout may have seen it."""
    if error is None or not error.where:
        return error
    if PurePath(error.where.rpartition(":")[0]).parts[-2:] != case.file.parts[-2:]:
        return error  # in a function that is run unmodified, which the file only names
    return replace(error, where=f"{case.file}:{error.where.rpartition(':')[2]}")


@cache
def hash_kit() -> str:
    """Return the hash of the kit and the worker: another version may observe something else."""
    return hash_code([*sorted(PACKAGE.glob("kit/*.py")), *sorted(PACKAGE.glob("worker/*.py"))])


@cache
def hash_host() -> str:
    """Return the hash of what an observation may owe to this host: its processor."""
    return hashlib.sha256("\n".join(collect_host_facts().values()).encode()).hexdigest()[:8]


@cache
def collect_host_facts() -> dict[str, str]:
    """Return the facts of this host that are kept with every run."""
    return {
        "system": platform.system(),
        "machine": platform.machine(),
        "processor": _processor(),
    }


def _processor() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return platform.processor()
    first, *_ = text.split("\n\n", maxsplit=1)
    pairs = (line.partition(":") for line in first.splitlines())
    fields = {name.strip(): value.strip() for name, _, value in pairs}
    return " ".join(fields.get(name, "") for name in ("model name", "flags", "Features")).strip()


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
        # Remembered for one run: goldens may change between two runs of one process.
        self._stamp = cache(_stamp_folder)
        self._given: dict[Path, set[str]] = {}

    def take(self, jobs: Sequence[Job], blobs: BlobStore) -> list[Record] | None:
        """Return the judged records of jobs if all still hold, and give their blobs to a run.

        Args:
            jobs: Those of one case file in one cell.
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
        first = jobs[0].planned
        goldens = {golden_folder(job.case.families, job.case) for job in jobs}
        # Large values are shared by the cases of a topic.
        goldens |= {folder.parent / LARGE_FOLDER for folder in goldens}
        facts = [
            _stamp_package(), first.cell.id, first.cell_hash, *map(self._stamp, sorted(goldens)),
            *map(self._hash_case, jobs),
        ]  # fmt: skip
        key = hashlib.sha256("\n".join(facts).encode()).hexdigest()[:32]
        return self._entries.folder / key[:2] / f"{key}.jsonl"

    def _hash_case(self, job: Job) -> str:
        # A case may depend on more than its content, e.g. on settings of its project: its whole
        # description counts.
        if job.case.id not in self._cases:
            self._cases[job.case.id] = hashlib.sha256(repr(job.case).encode()).hexdigest()
        return self._cases[job.case.id]


def group_by_file(jobs: Iterable[Job]) -> Iterator[list[Job]]:
    """Yield the jobs of each case file in each cell; both stand together in a plan."""
    for _, group in groupby(jobs, lambda job: (job.planned.cell.id, job.case.file)):
        yield list(group)


@cache
def _stamp_package() -> str:
    """Return what changes when this package does: another judge may say something else."""
    return "".join(
        _stamp_folder(folder) for folder in sorted({f.parent for f in PACKAGE.rglob("*.py")})
    )


def _stamp_folder(folder: Path) -> str:
    """Return names, sizes and times of the files of a folder, hashed."""
    try:
        with os.scandir(folder) as entries:
            files = sorted(((f.name, f.stat()) for f in entries if f.is_file()), key=itemgetter(0))
    except OSError:
        files = []
    listing = "\n".join(f"{name} {stat.st_size} {stat.st_mtime_ns}" for name, stat in files)
    return hashlib.sha256(listing.encode()).hexdigest()
