"""The run directory: the plan, and a record per finished job that survives `kill -9`."""

from __future__ import annotations

import fcntl
import os
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, TypeVar

import msgspec

from conformance.cells.secret_masking import Masker
from conformance.engine.cache.blobs import BlobStore
from conformance.errors import ConformanceError, UsageError
from conformance.files import (
    MALFORMED,
    TEMPORARY,
    describe_os_error,
    disk_error,
    read_regular,
    readable_json,
    sync_to_disk,
    write_atomically,
)
from conformance.json_lines import MalformedLineError, append_line, decode_log, open_log
from conformance.model.record import Record
from conformance.model.run import RunInfo
from conformance.model.run_files import SINCE, Since

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

T = TypeVar("T")
REPORTS: Final = "reports"
_GITIGNORE: Final = "*\n!/*.md\n"
"""Runs are data of one machine; pages of goldens and suites are committed."""
RUN = "run.json"
RESULTS = "results.jsonl"
UPGRADE = "upgrade.json"
"""Result of an upgrade, in the directory of its run."""
REMEDY = "restore it, or run again: unchanged jobs are taken from the cache"


class CorruptRunError(ConformanceError):
    """A run directory that cannot be read."""


@dataclass(frozen=True, slots=True)
class RunDirectory:
    """One run's directory."""

    path: Path

    @property
    def id(self) -> str:
        """Name of the run."""
        return self.path.name

    @property
    def blobs(self) -> BlobStore:
        """The run's blobs."""
        return BlobStore(self.path / "blobs")

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Lock the directory against other runs, and remove temporary files of a killed run.

        The kernel releases the lock when its process ends, even by `kill -9`.

        Raises:
            UsageError: If another run is writing here.
            InfrastructureError: If the disk refuses.
        """
        try:
            self.create()
            descriptor = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
        except OSError as error:
            raise disk_error(self.path, error) from None
        try:
            _lock(descriptor, self.path)
            # Under the lock: a run that is still writing needs its temporary files.
            try:
                for folder in (self.path, self.blobs.folder):
                    for left in folder.glob(f"{TEMPORARY}*"):
                        left.unlink(missing_ok=True)
            except OSError as error:
                raise disk_error(self.path, error) from None
            yield
        finally:
            os.close(descriptor)

    def create(self) -> None:
        """Create the directory. A new folder `reports` gets a `.gitignore`.

        Raises:
            OSError: If the disk refuses.
        """
        reports = self.path.parent.parent  # of `reports/runs/ID`, or of a search's log
        is_new = reports.name == REPORTS and not reports.exists()
        self.path.mkdir(parents=True, exist_ok=True)
        if is_new:
            (reports / ".gitignore").write_text(_GITIGNORE, encoding="utf-8")

    def check_empty(self, remedy: str = "name another folder with --run") -> None:
        """Check that the directory has no files, except temporary ones of a killed run.

        Args:
            remedy: Advice for the message about a folder that is not empty.

        Raises:
            UsageError: If the folder holds something, or cannot be read.
        """
        try:
            names = [path.name for path in self.path.iterdir()]
        except FileNotFoundError:
            return
        except OSError as error:
            raise UsageError(
                f"{self.path}: cannot be read: {describe_os_error(error)}; "
                "name another folder with --run"
            ) from None
        if any(not name.startswith(TEMPORARY) for name in names):
            raise UsageError(f"{self.path} is not empty; {remedy}")

    def write_run(self, info: RunInfo) -> None:
        """Write `run.json` atomically.

        Raises:
            InfrastructureError: If the disk refuses.
        """
        # Also here: an option or a path may contain a secret of the environment.
        text = Masker(os.environ).mask_content(readable_json(info))
        try:
            self.create()
        except OSError as error:
            raise disk_error(self.path, error) from None
        write_atomically(self.path / RUN, text + b"\n", durable=True)

    def read_run(self) -> RunInfo:
        """Return the content of `run.json`.

        Raises:
            CorruptRunError: If it is missing or malformed.
        """
        return self.read_run_as(RunInfo)

    def read_run_as(self, kind: type[T]) -> T:
        """Return the part of `run.json` that a type describes.

        Args:
            kind: Type of the part, a dataclass or a msgspec struct.

        Raises:
            CorruptRunError: If it is missing or malformed.
        """
        path = self.path / RUN
        try:
            return msgspec.json.decode(read_regular(path), type=kind)
        except OSError as error:
            raise CorruptRunError(
                f"{path}: cannot be read: {describe_os_error(error)}; name the directory of a run"
            ) from None
        except MALFORMED as error:
            raise CorruptRunError(
                f"{path}: expected the description of a run: {str(error).lower()}; {REMEDY}"
            ) from None

    def read_file(self, name: str) -> bytes | None:
        """Return the content of a file of the run, None if there is none.

        Args:
            name: File name.

        Raises:
            CorruptRunError: If the file cannot be read.
        """
        path = self.path / name
        try:
            return read_regular(path)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise CorruptRunError(f"{path}: cannot be read: {describe_os_error(error)}") from None

    def write_upgrade(self, content: bytes) -> None:
        """Write the result of an upgrade atomically.

        Raises:
            InfrastructureError: If the disk refuses.
        """
        write_atomically(self.path / UPGRADE, content + b"\n")

    def write_since(self, since: Since) -> None:
        """Write the changes since the previous run atomically.

        Raises:
            InfrastructureError: If the disk refuses.
        """
        write_atomically(self.path / SINCE, msgspec.json.encode(since) + b"\n")

    def read_since(self) -> Since | None:
        """Return the changes since the previous run, None if the run was not compared.

        Raises:
            CorruptRunError: If it cannot be read.
        """
        content = self.read_file(SINCE)
        try:
            return None if content is None else msgspec.json.decode(content, type=Since)
        except MALFORMED as error:
            raise CorruptRunError(
                f"{self.path / SINCE}: expected the changes since another run: "
                f"{str(error).lower()}; delete it"
            ) from None

    def write_records(self, records: Iterable[Record]) -> None:
        """Write the records of all finished jobs atomically, after their blobs.

        Raises:
            InfrastructureError: If the disk refuses.
        """
        records = tuple(records)
        self.blobs.sync({name for record in records for name in record.artifacts.values()})
        lines = msgspec.json.Encoder().encode_lines(records)
        write_atomically(self.path / RESULTS, lines, durable=True)

    def read_records(self) -> list[Record]:
        """Return the finished jobs, in the order they ended.

        Raises:
            CorruptRunError: If a line is no record; the message names it.
        """
        return self.read_records_as(Record)

    def read_records_as(self, kind: type[T]) -> list[T]:
        """Return the part of each record that a type describes.

        A last line without a line break was left by a killed run; it is ignored.

        Args:
            kind: Type of the part, a dataclass or a msgspec struct.

        Raises:
            CorruptRunError: If another line is no record; the message names it.
        """
        try:
            return decode_log(self.read_file(RESULTS) or b"", kind)
        except MalformedLineError as error:
            raise CorruptRunError(
                f"{self.path / RESULTS}:{error.number}: expected a record: "
                f"{error.reason.lower()}; delete the line to run its job again"
            ) from None


def _lock(descriptor: int, path: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise UsageError(
            f"{path}: another run is writing to it; wait for its end, or name another folder with "
            "--run"
        ) from None
    except OSError:  # a file system that cannot lock folders, e.g. some network file systems
        return


SHORT: Final = 0.02
"""Seconds of a job below which running it again is faster than waiting for the disk."""


class Results:
    """Appends records to `results.jsonl`, each durable before the next one is reported.

    The blobs of a record are durable before it: after a power failure no record names a missing
    blob.
    """

    def __init__(self, run: RunDirectory) -> None:
        self._path = run.path / RESULTS
        self._blobs = run.blobs
        self._synced: set[str] = set()
        self._pending: set[str] = set()
        self._masker = Masker(os.environ)
        try:
            run.create()
            self._fd = open_log(self._path)
            sync_to_disk(self._path.parent)  # the name of a new file
        except OSError as error:
            raise disk_error(self._path, error) from None

    def append(self, record: Record, *, sync: bool = True) -> None:
        """Add one finished job.

        Args:
            record: Record of the job.
            sync: Whether to wait for the disk, unless the job takes less time than that; `close`
                waits in any case.

        Raises:
            InfrastructureError: If the disk refuses; an incomplete line is removed.
        """
        line = self._masker.mask_content(msgspec.json.encode(record))
        # A record that is lost in a power failure costs no more than running its job again.
        durable = sync and record.seconds.get("job", SHORT) >= SHORT
        if not record.cached:  # blobs of a cached record were synced by the run that made them
            self._pending.update(record.artifacts.values())
        if durable:
            self._sync_blobs()
        try:
            append_line(self._fd, line, durable=durable)
        except OSError as error:
            raise disk_error(self._path, error) from None

    def _sync_blobs(self) -> None:
        new = self._pending - self._synced
        if new:
            self._blobs.sync(new)
            self._synced |= new
        self._pending.clear()

    def close(self) -> None:
        """Wait for the disk and close the file."""
        try:
            self._sync_blobs()
            os.fsync(self._fd)
        except OSError as error:
            raise disk_error(self._path, error) from None
        finally:
            os.close(self._fd)


def get_current_time() -> str:
    """Return the time, ISO 8601 in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")
