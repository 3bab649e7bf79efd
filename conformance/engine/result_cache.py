"""Observations of jobs that have not changed since they ran; judged anew each time."""

from __future__ import annotations

import hashlib
import platform
from dataclasses import replace
from functools import cache
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

import msgspec

from conformance.cache_folder import CacheFolder
from conformance.corpus.project import PACKAGE
from conformance.engine.blobs import BlobStore, CorruptBlobError
from conformance.engine.input_files import has_same_inputs
from conformance.engine.job import job_key
from conformance.engine.variants import was_cut_short
from conformance.engine.verdict_cache import FOLDER, VerdictCache
from conformance.errors import InfrastructureError
from conformance.files import MALFORMED, disk_error
from conformance.model.outcome import Outcome
from conformance.model.record import Record

if TYPE_CHECKING:
    from conformance.engine.job import Job
    from conformance.model.case import Case
    from conformance.model.record import ErrorInfo

CACHED = frozenset({Outcome.OK, Outcome.RAISED, Outcome.UNSUPPORTED})
"""Outcomes worth keeping: the others may be the host's fault, and are seen again."""
ENDED = frozenset({Outcome.CRASHED, Outcome.TIMED_OUT})
"""Outcomes of tests worth keeping besides."""


class ResultCache:
    """Finished jobs by key, with their blobs, below the cache folder.

    Args:
        folder: Cache folder.
        fresh: Whether nothing is taken from the cache; results are kept all the same.
    """

    def __init__(self, folder: Path, *, fresh: bool = False) -> None:
        self._fresh = fresh
        place = f"{kit_hash()}-{host_hash()}"
        self._entries = CacheFolder(folder / "results" / place)
        self.blobs = BlobStore(folder / "blobs")
        self.settled = VerdictCache(folder / FOLDER / place, self.blobs, fresh=fresh)

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
        key = job_key(job, kit_hash())
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
def kit_hash() -> str:
    """Return the hash of the kit and the worker: another version may observe something else."""
    digest = hashlib.sha256()
    for file in sorted(PACKAGE.glob("kit/*.py")) + sorted(PACKAGE.glob("worker/*.py")):
        digest.update(file.name.encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()[:12]


@cache
def host_hash() -> str:
    """Return the hash of what an observation may owe to this host: its processor."""
    return hashlib.sha256("\n".join(host_facts().values()).encode()).hexdigest()[:8]


@cache
def host_facts() -> dict[str, str]:
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
