"""The result cache: observations of jobs that have not changed, which every run judges again.

Verdicts are cached as well, see `conformance.engine.cache.verdicts`, and results of other machines,
see `conformance.engine.cache.remote_results`.
"""

from __future__ import annotations

import hashlib
import platform
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from conformance.cache_folder import CacheFolder
from conformance.corpus.project import PACKAGE, hash_code
from conformance.engine.cache.blobs import BLOBS, BlobStore, CorruptBlobError, MissingBlobError
from conformance.engine.cache.verdicts import FOLDER, FileStamps, VerdictCache
from conformance.engine.input_files import has_same_inputs
from conformance.engine.job import make_job_key, relocate_error
from conformance.engine.workers.transcript import was_cut_short
from conformance.errors import InfrastructureError
from conformance.files import MALFORMED, disk_error
from conformance.model.outcome import Outcome
from conformance.model.record import Record

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from conformance.engine.cache.remote_results import RemoteResults
    from conformance.engine.job import Job


CACHED = frozenset({Outcome.OK, Outcome.RAISED, Outcome.UNSUPPORTED})
"""Outcomes that are cached: others may be the host's fault, and their jobs run again."""
ENDED = frozenset({Outcome.CRASHED, Outcome.TIMED_OUT})
"""Further outcomes that are cached for tests."""


class ResultCache:
    """Finished jobs by key, with their blobs, below the cache folder.

    Args:
        folder: Cache folder.
        fresh: Whether cached results are ignored; new results are stored in any case.
        remote: Results of the shared cache, None for no shared cache.
        host_hash: Hash of the host that runs the jobs, empty for this host.
    """

    def __init__(
        self,
        folder: Path,
        *,
        fresh: bool = False,
        remote: RemoteResults | None = None,
        host_hash: str = "",
    ) -> None:
        self._fresh = fresh
        place = f"{hash_kit()}-{host_hash or hash_host()}"
        self._entries = CacheFolder(folder / "results" / place)
        self.blobs = BlobStore(folder / BLOBS)
        stamps = FileStamps()
        self.verdicts = VerdictCache(
            folder / FOLDER / place, self.blobs, fresh=fresh, stamps=stamps
        )
        self.remote = remote
        # Verdicts whose blobs only the shared cache has, for runs with the same shared cache.
        self._remote_verdicts = None
        if self.remote is not None:
            self._remote_verdicts = VerdictCache(
                self.remote.copies.folder / FOLDER / place, self.blobs,
                fresh=fresh, origin=self.remote.remote.url, stamps=stamps,
            )  # fmt: skip

    def take_files(self, files: Iterable[Sequence[Job]], blobs: BlobStore) -> Iterator[Record]:
        """Yield the judged records of case files that are cached as a whole.

        Args:
            files: The jobs of each case file in each cell.
            blobs: The run's blobs. Those of a record from the shared cache are not fetched.

        Raises:
            InfrastructureError: If the run's disk refuses.
        """
        missing = []
        for jobs in files:
            known = self.verdicts.take(jobs, blobs)
            if known is None and self.remote is not None and self._remote_verdicts is not None:
                known = self._remote_verdicts.take(jobs, blobs)
                if known is not None:
                    self.remote.jobs.update(job.id for job in jobs)
            if known is None:
                missing.append(jobs)
            else:
                yield from known
        if self.remote is None or self._remote_verdicts is None or self._fresh:
            return
        for jobs, records in self.remote.load_files(missing):
            blobs.write_origin(self.remote.remote.url)
            self._remote_verdicts.put(jobs, records)
            yield from records

    def put_files(self, files: Iterable[tuple[Sequence[Job], Sequence[Record]]]) -> None:
        """Store the judged records of case files, all of whose jobs are cached.

        Args:
            files: The jobs of each case file in each cell, with their records.
        """
        for jobs, records in files:
            is_local = self.remote is None or self.remote.has_none_of(jobs)
            verdicts = self.verdicts if is_local else self._remote_verdicts
            if verdicts is not None:
                verdicts.put(jobs, records)

    def share_files(
        self, files: Iterable[tuple[Sequence[Job], Sequence[Record]]], count: int
    ) -> None:
        """Add cached case files to the shared cache, wait for all uploads, and log its use.

        Args:
            files: See `put_files`; also files that were cached earlier.
            count: Number of jobs of the run.
        """
        if self.remote is not None:
            self.remote.put_files(list(files))
            self.remote.report_use(count)

    def load_remote(self, jobs: Iterable[Job]) -> None:
        """Fetch the records that only the shared cache has, together.

        Args:
            jobs: Jobs that `take` is going to be called for.
        """
        if self.remote is not None and not self._fresh:
            self.remote.load_records(job for job in jobs if not self._path(job).exists())

    def take(self, job: Job, blobs: BlobStore) -> Record | None:
        """Return the cached record of a job, and copy its blobs to a run.

        Args:
            job: Job to look up.
            blobs: The run's blobs.

        Returns:
            The record with its former judgement, marked as cached; None if there is none, or if it
            or its blobs cannot be read.

        Raises:
            InfrastructureError: If the run's disk refuses.
        """
        if self._fresh:
            return None
        record = self._take_local(job, blobs)
        if record is None and self.remote is not None:
            record = self.remote.take(job)
            if record is not None:
                blobs.write_origin(self.remote.remote.url)
        return record

    def _take_local(self, job: Job, blobs: BlobStore) -> Record | None:
        content = self._entries.read(self._path(job))
        if content is None:
            return None
        try:
            record = msgspec.json.decode(content, type=Record)
        except MALFORMED:
            return None
        # The key covers the case, not the files that a test or program read.
        if not has_same_inputs(record, self.blobs):
            return None
        try:
            # Hashed, because judging reads values only: `accept` would find a damaged IR too late.
            for name in record.artifacts.values():
                blobs.adopt(name, self.blobs, trusted=False)
        except CorruptBlobError as error:
            self._entries.report_damage(error)
            self.forget(record)
            return None
        return replace(record, error=relocate_error(record.error, job.case), cached=True)

    def forget(self, record: Record) -> None:
        """Remove the damaged blobs of a record."""
        try:
            self.blobs.drop_broken(record.artifacts.values())
        except OSError as error:
            self._entries.report_unwritable(disk_error(self.blobs.folder, error))

    def drop(self, job: Job) -> None:
        """Remove the record of a flaky job."""
        path = self._path(job)
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            self._entries.report_unwritable(disk_error(path, error))
        if self.remote is not None:
            self.remote.drop(job)

    def put(
        self, job: Job, record: Record, run_blobs: BlobStore, *, expected: bool = False
    ) -> bool:
        """Store a finished job, unless its outcome may be the host's fault.

        Args:
            job: Job that has finished.
            record: Record of the job.
            run_blobs: The run's blobs.
            expected: Whether the case or its golden expect this outcome, so that a crash is no
                accident.

        Returns:
            Whether it was stored. A full or read-only disk is logged.
        """
        cell = job.planned.cell
        if (
            # A note such as `near its timeout` must be observed again.
            record.notes
            or not _is_reproducible(job, record, expected=expected)
            # The key does not cover a user's environment or an accelerator.
            or cell.interpreter is not None
            or cell.place.real
        ):
            return False
        try:
            # The job itself ended well, but a variant may have failed because of the host.
            if was_cut_short(record.artifacts, run_blobs):
                return False
            # The blobs first: an entry must not name a blob that the cache lacks.
            for name in record.artifacts.values():
                self.blobs.adopt(name, run_blobs)
        except MissingBlobError:
            return self._put_uploaded(job, record, run_blobs)
        except CorruptBlobError:
            return False
        except InfrastructureError as error:
            self._entries.report_unwritable(error)
            return False
        if self.remote is not None:
            self.remote.put(job, record)
        return self._entries.write(self._path(job), msgspec.json.encode(record))

    def _put_uploaded(self, job: Job, record: Record, run_blobs: BlobStore) -> bool:
        """Store a job of a node that has put its artifacts into the shared cache."""
        if self.remote is None or run_blobs.read_origin() != self.remote.remote.url:
            return False
        self.remote.put_uploaded(job, record)
        return True

    def _path(self, job: Job) -> Path:
        key = make_job_key(job, hash_kit())
        return self._entries.folder / key[:2] / f"{key}.json"


def _is_reproducible(job: Job, record: Record, *, expected: bool) -> bool:
    """Return whether an outcome is likely to be the same the next time.

    A test that crashes or hangs does so in a process that many tests share. It is reported only if
    it does so twice or as declared, so it can be cached. A SIGKILL comes from outside.
    """
    if record.outcome in CACHED:
        return True
    ended = job.case.kind == "test" and record.outcome in ENDED
    crashed = expected and record.outcome is Outcome.CRASHED
    return (ended or crashed) and (record.error is None or record.error.type != "SIGKILL")


@cache
def hash_kit() -> str:
    """Return the hash of the kit and the worker, which take part in every observation."""
    return hash_code([*sorted(PACKAGE.glob("kit/*.py")), *sorted(PACKAGE.glob("worker/*.py"))])


@cache
def hash_host() -> str:
    """Return the hash of the host facts that may change an observation: its processor."""
    # XLA generates code for the features of the processor, which changes the last bits of values.
    return hashlib.sha256("\n".join(collect_host_facts().values()).encode()).hexdigest()[:8]


@cache
def collect_host_facts() -> dict[str, str]:
    """Return the facts of this host that every run records."""
    return {
        "system": platform.system(),
        "machine": platform.machine(),
        "processor": _read_processor(),
    }


def _read_processor() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return platform.processor()
    # Of the first core; fields such as `cpu MHz` change all the time. ARM has `Features`.
    first, *_ = text.split("\n\n", maxsplit=1)
    pairs = (line.partition(":") for line in first.splitlines())
    fields = {name.strip(): value.strip() for name, _, value in pairs}
    return " ".join(fields.get(name, "") for name in ("model name", "flags", "Features")).strip()
