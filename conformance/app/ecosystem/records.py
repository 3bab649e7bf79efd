"""The recorded outcomes of libraries: those of the project, and those of this machine."""

from __future__ import annotations

import os
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

import msgspec

from conformance.app.output_files import print_note
from conformance.ecosystem.outcome import LibraryRecord
from conformance.ecosystem.solution import SetRecord
from conformance.errors import InfrastructureError, UsageError
from conformance.files import describe_os_error, disk_error, write_atomically
from conformance.json_lines import MalformedLineError, append_line, decode_log, open_log
from conformance.locking import lock_folders

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from conformance.app.context import ProjectContext

RESULTS: Final = "results.jsonl"
SETS: Final = "sets.jsonl"
R = TypeVar("R", LibraryRecord, SetRecord)


@dataclass(frozen=True)
class RecordFile(Generic[R]):
    """Records in a file with one JSON document per line, the last of each key; for several threads.

    Attributes:
        shipped: File of the project or of the package.
        written: File that receives new records; the same in a checkout.
        kind: Type of the records.
    """

    shipped: Path
    written: Path
    kind: type[R]
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def exists(self) -> bool:
        """Return whether there are any records."""
        return self.shipped.exists() or self.written.exists()

    def load(self) -> dict[Any, R]:
        """Return the records by key.

        Raises:
            UsageError: If a file cannot be read, or a line is malformed.
        """
        files = dict.fromkeys((self.shipped, self.written))
        return {record.key: record for file in files for record in self._read(file)}

    def append(self, record: R) -> None:
        """Add a record, which survives the end of this process.

        Raises:
            InfrastructureError: If the disk refuses.
        """
        with self._hold():
            try:
                descriptor = open_log(self.written)
                try:
                    append_line(descriptor, msgspec.json.encode(record), durable=True)
                finally:
                    os.close(descriptor)
            except OSError as error:
                raise disk_error(self.written, error) from error

    def sort(self) -> None:
        """Write the last record of each key in order, so that a change reads as a diff.

        Raises:
            UsageError: If the file cannot be read, or a line is malformed.
            InfrastructureError: If the disk refuses.
        """
        # Read and written back: a record that another process adds meanwhile must not be lost.
        with self._hold():
            last = {record.key: record for record in self._read(self.written)}
            lines = [msgspec.json.encode(last[key]) + b"\n" for key in sorted(last)]
            if lines:
                write_atomically(self.written, b"".join(lines), durable=True)

    @contextmanager
    def _hold(self) -> Iterator[None]:
        """Hold the right to write, against other threads and processes."""
        with self._lock, lock_folders({self.written.parent}, print_note):
            yield

    def _read(self, file: Path) -> list[R]:
        try:
            return decode_log(file.read_bytes(), self.kind)
        except FileNotFoundError:
            return []
        except OSError as error:
            raise InfrastructureError(
                f"{file}: cannot be read: {describe_os_error(error)}"
            ) from error
        except MalformedLineError as error:
            raise UsageError(f"{file}: {error}; restore it, or delete the line") from None


def open_results(context: ProjectContext) -> RecordFile[LibraryRecord]:
    """Return the file with the outcomes of libraries.

    Args:
        context: The project.
    """
    return RecordFile(*_locate(context, RESULTS), kind=LibraryRecord)


def open_sets(context: ProjectContext) -> RecordFile[SetRecord]:
    """Return the file with the outcomes of sets of libraries.

    Args:
        context: The project.
    """
    return RecordFile(*_locate(context, SETS), kind=SetRecord)


def _locate(context: ProjectContext, name: str) -> tuple[Path, Path]:
    shipped = context.project.ecosystem / name
    # The data of an installed package are not written: its records are added in the cache.
    return shipped, shipped if context.project.writable else context.cache / "ecosystem" / name
