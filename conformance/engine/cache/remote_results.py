"""Results of the shared cache: judged records of case files, and records of jobs.

A run looks for the judged records of a case file in a cell first, about ten jobs in one entry, and
for the records of single jobs where a file is missing, e.g. because one of its cases has changed.
Keys are hashes of contents, not of modification times, which differ between machines. Artifacts
are not fetched: the blob stores of runs name the cache as their origin.
"""

from __future__ import annotations

import hashlib
import logging
import sys
from dataclasses import replace
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from conformance.cache_folder import CacheFolder
from conformance.corpus.project import list_modules
from conformance.engine.cache.blobs import BLOBS, BlobStore, CorruptBlobError, is_blob_name
from conformance.engine.input_files import READ_FILES, are_unchanged, decode_inputs
from conformance.engine.job import make_job_key, relocate_error
from conformance.engine.workers.transcript import list_judged_blobs
from conformance.files import MALFORMED, stamp_folder
from conformance.golden.layout import list_golden_folders
from conformance.model.record import Record
from conformance.wording import plural

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from conformance.engine.job import Job
    from conformance.remote_cache.cache import RemoteCache

COPIES: Final = "remote"
"""Folder of the local cache with copies of records from shared caches."""
_LIBRARIES: Final = ("numpy", "ml_dtypes", "filecheck", "safetensors")
"""Packages whose version may change a verdict."""
_LOG: Final = logging.getLogger("conformance.cache")
_LINES: Final = msgspec.json.Decoder(Record)


class RemoteResults:
    """Results of the jobs of one command in the shared cache.

    Args:
        remote: The shared cache.
        folder: The local cache folder, with its blobs and copies of records.
        kit_hash: Hash of the kit and the worker.
        host_hash: Hash of the host facts that may change an observation.
    """

    def __init__(self, remote: RemoteCache, folder: Path, *, kit_hash: str, host_hash: str) -> None:
        self.remote = remote
        self.jobs: set[tuple[str, str]] = set()
        self._uploaded_elsewhere: set[tuple[str, str]] = set()
        """Ids of the jobs whose records came from the shared cache, now or earlier."""
        self._blobs = BlobStore(folder / BLOBS)
        self._kit = kit_hash
        self._place = f"{kit_hash}-{host_hash}"
        name = hashlib.sha256(remote.url.encode()).hexdigest()[:16]
        self.copies = CacheFolder(folder / COPIES / name)
        """Local copies of records, below a folder for each shared cache."""
        self._goldens = _GoldenHashes(folder)
        self._files: dict[tuple[str, ...], str] = {}
        self._fetched: dict[tuple[str, str], Record | None] = {}
        self._added = 0
        self._uploaded: set[tuple[str, str]] = set()

    @property
    def write(self) -> bool:
        """Whether new results are added."""
        return self.remote.write

    def load_files(
        self, files: Iterable[Sequence[Job]]
    ) -> Iterator[tuple[Sequence[Job], list[Record]]]:
        """Yield the judged records of case files, with their jobs, in any order.

        Args:
            files: The jobs of each case file in each cell.
        """
        keys = {key: jobs for jobs in files if (key := self._make_file_key(jobs))}
        self._goldens.save()
        for key, content in self.remote.get_actions(keys):
            jobs = keys[key]
            records = self._decode(content, jobs)
            if records is not None:
                self.jobs.update(job.id for job in jobs)
                yield jobs, records

    def load_records(self, jobs: Iterable[Job]) -> None:
        """Fetch the records of jobs together, with the artifacts that judging them needs.

        Args:
            jobs: Jobs that `take` is going to be called for.
        """
        keys = {self._make_job_key(job): job for job in jobs if job.planned.cell_hash}
        copied = {key: data for key in keys if (data := self._read_copy(key)) is not None}
        self._fetched.update({job.id: None for job in keys.values()})
        fetched = self.remote.get_actions(key for key in keys if key not in copied)
        wanted: set[str] = set()
        for key, content in (*copied.items(), *fetched):
            job = keys[key]
            records = self._decode(content, [job])
            if records is None:
                continue
            if key not in copied:
                self.copies.write(self._path(key), content)
            self._fetched[job.id] = records[0]
            wanted.update(list_judged_blobs(records[0].artifacts))
        self._fetch_blobs(wanted)

    def take(self, job: Job) -> Record | None:
        """Return the record of a job, None if there is none.

        Args:
            job: Job to look up.
        """
        if job.id not in self._fetched:
            self.load_records([job])
        # Once only: a record whose artifacts turn out to be missing is not taken again.
        record = self._fetched.get(job.id)
        self._fetched[job.id] = None
        if record is not None:
            self.jobs.add(job.id)
        return record

    def put(self, job: Job, record: Record) -> None:
        """Store the record of a job whose blobs are in the local cache, in the background.

        Args:
            job: Job that has finished.
            record: Its record.
        """
        if self.write and job.planned.cell_hash and job.id not in self._uploaded:
            self._uploaded.add(job.id)
            names = record.artifacts.values()
            content = msgspec.json.encode(record)
            self.remote.upload(self._make_job_key(job), content, names, self._blobs.get)

    def put_uploaded(self, job: Job, record: Record) -> None:
        """Store the record of a job whose blobs another host has put into the shared cache.

        Args:
            job: Job that has finished.
            record: Its record.
        """
        self.remote.note_stored(record.artifacts.values())
        self._uploaded_elsewhere.add(job.id)
        self.put(job, record)

    def has_none_of(self, jobs: Iterable[Job]) -> bool:
        """Return whether the blobs of all jobs are in the local cache, not in the shared one only.

        Args:
            jobs: The jobs.
        """
        elsewhere = self.jobs | self._uploaded_elsewhere
        return elsewhere.isdisjoint(job.id for job in jobs)

    def put_files(self, files: Sequence[tuple[Sequence[Job], Sequence[Record]]]) -> None:
        """Store the judged records of case files that the shared cache lacks, and wait for all.

        Args:
            files: Jobs with their records; the blobs are in the local cache, or in the shared one.
        """
        if self.write:
            keys = {key: file for file in files if (key := self._make_file_key(file[0]))}
            self._goldens.save()
            # Listed once: asking for each entry would take as long as storing it.
            for key in keys.keys() - self.remote.list_actions(self._file_folder):
                jobs, records = keys[key]
                self._put_file(key, jobs, records)
        self._added += self.remote.flush()

    def _put_file(self, key: str, jobs: Sequence[Job], records: Sequence[Record]) -> None:
        names: set[str] = set()
        for job, record in zip(jobs, records, strict=True):
            if job.id not in self.jobs:
                self.put(job, record)
                names.update(record.artifacts.values())
        content = msgspec.json.Encoder().encode_lines(records)
        self.remote.upload(key, content, names, self._blobs.get)

    def drop(self, job: Job) -> None:
        """Remove the record of a flaky job."""
        key = self._make_job_key(job)
        self._path(key).unlink(missing_ok=True)
        self.remote.remove_action(key)

    def report_use(self, jobs: int) -> None:
        """Log how much of a run came from the shared cache, and its damaged entries.

        Args:
            jobs: Number of jobs of the run.
        """
        parts = [f"{len(self.jobs):,} of {plural(jobs, 'job')} from {self.remote.url}"]
        if self.write:
            parts.append(f"{self._added:,} entries added")
        if count := len(self.remote.damaged):
            noun = "entry" if count == 1 else "entries"
            parts.append(f"{count:,} damaged {noun} ignored; conformance cache verify lists them")
        # A cache that is dead from the start has been reported.
        if self.jobs or len(parts) > 1 or not self.remote.failure:
            _LOG.warning("note: cache: %s", "; ".join(parts))

    def _decode(self, content: bytes, jobs: Sequence[Job]) -> list[Record] | None:
        """Return the records of jobs if they are exactly theirs, and valid on this machine."""
        try:
            records = _LINES.decode_lines(content)
        except MALFORMED:
            return None
        if len(records) != len(jobs) or not all(map(_is_of, records, jobs)):
            return None
        if not self._has_same_inputs(records):
            return None
        return [
            replace(record, error=relocate_error(record.error, job.case), cached=True)
            for job, record in zip(jobs, records, strict=True)
        ]

    def _has_same_inputs(self, records: Iterable[Record]) -> bool:
        """Return whether all files that the jobs read are on this machine, unchanged."""
        names = {r.artifacts[READ_FILES] for r in records if READ_FILES in r.artifacts}
        self._fetch_blobs(names)
        try:
            # Absolute paths. In a checkout at another place all files are missing, also those
            # that were missing when the job ran: one of them at least has to exist.
            inputs = [decode_inputs(self._blobs.get(name)) for name in names]
        except (CorruptBlobError, *MALFORMED):
            return False
        return all(any(files.values()) and are_unchanged(files) for files in inputs)

    def _fetch_blobs(self, names: Iterable[str]) -> None:
        """Store contents in the local cache, as far as they can be fetched."""
        missing = [name for name in names if not self._blobs.has(name)]
        for _, data in self.remote.get_contents(missing):
            self._blobs.put(data)

    def _read_copy(self, key: str) -> bytes | None:
        return self.copies.read(self._path(key))

    def _path(self, key: str) -> Path:
        folder, _, name = key.rpartition("/")
        return self.copies.folder / folder / name[:2] / name

    def _make_job_key(self, job: Job) -> str:
        return f"jobs/{self._place}/{make_job_key(job, self._kit)}"

    @property
    def _file_folder(self) -> str:
        # By the judging code: only the current generation has to be listed.
        return f"files/{self._place}-{hash_judging_code()}"

    def _make_file_key(self, jobs: Sequence[Job]) -> str:
        """Return the key of the judged records of a case file, empty if they are not cached."""
        planned = jobs[0].planned
        # As in the local cache: the hash of a user's environment or an accelerator is no key.
        if not planned.cell_hash or planned.cell.interpreter is not None or planned.cell.place.real:
            return ""
        # By case id: a run has the same cases in each of its cells.
        ids = tuple(job.case.id for job in jobs)
        if ids not in self._files:
            folders = list_golden_folders(job.case for job in jobs)
            described = [*map(self._goldens.hash_folder, folders), *map(_describe_case, jobs)]
            self._files[ids] = hashlib.sha256("\n".join(described).encode()).hexdigest()
        facts = (planned.cell.id, planned.cell_hash, self._files[ids])
        digest = hashlib.sha256("\n".join(facts).encode()).hexdigest()
        return f"{self._file_folder}/{digest[:32]}"


def _is_of(record: Record, job: Job) -> bool:
    facts = (record.case, record.cell, record.case_hash, record.cell_hash)
    is_same = facts == (*job.id, job.case.content_hash, job.planned.cell_hash)
    return is_same and all(map(is_blob_name, record.artifacts.values()))


def _describe_case(job: Job) -> str:
    """Return the whole description of a case, except where the checkout is on this machine."""
    file = Path(*job.case.file.parts[-2:])
    return repr(replace(job.case, file=file, home=None))


@cache
def hash_judging_code() -> str:
    """Return the hash of what judges: this package, its Python and its libraries."""
    digest = hashlib.sha256(f"{sys.version_info[:2]}".encode())
    for name in _LIBRARIES:
        try:
            digest.update(f"{name} {version(name)}\n".encode())
        except PackageNotFoundError:
            continue
    for folder in sorted({file.parent for file in list_modules()}):
        digest.update(_hash_folder(folder))
    return digest.hexdigest()[:12]


def _hash_folder(folder: Path) -> bytes:
    """Return the hash of the names and contents of the files of a folder."""
    digest = hashlib.sha256()
    try:
        for file in sorted(path for path in folder.iterdir() if path.is_file()):
            content = hashlib.sha256(file.read_bytes()).digest()
            digest.update(file.name.encode() + b"\0" + content)
    except OSError:  # a missing folder, or a file that is replaced at the moment
        return b""
    return digest.digest()


class _GoldenHashes:
    """Hashes of folders of goldens by content, remembered with the stamp of the folder."""

    def __init__(self, folder: Path) -> None:
        self._entries = CacheFolder(folder / "golden_hashes")
        self._path = self._entries.folder / "hashes.json"
        # Goldens do not change while a run looks them up.
        self.hash_folder = cache(self._hash)
        self._is_changed = False
        self._known: dict[str, tuple[str, str]] | None = None

    def _hash(self, folder: Path) -> str:
        if self._known is None:
            self._known = self._load()
        stamp = stamp_folder(folder)
        known = self._known.get(str(folder))
        if known is None or known[0] != stamp:
            known = (stamp, _hash_folder(folder).hex())
            self._known[str(folder)] = known
            self._is_changed = True
        return known[1]

    def _load(self) -> dict[str, tuple[str, str]]:
        content = self._entries.read(self._path)
        try:
            return msgspec.json.decode(content or b"{}", type=dict[str, tuple[str, str]])
        except MALFORMED:
            return {}

    def save(self) -> None:
        """Store the hashes that were computed."""
        if self._is_changed:
            self._entries.write(self._path, msgspec.json.encode(self._known))
            self._is_changed = False
