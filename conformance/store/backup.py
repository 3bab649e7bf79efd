"""The backup beside a store's file: made after each write, used when the file is damaged."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from typing import TYPE_CHECKING, Final

from filelock import FileLock

from conformance.files import disk_error, temporary_file
from conformance.store.database import CorruptStoreError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

BACKUP: Final = ".backup"
DAMAGED: Final = ".damaged"
_CHECKS: Final = ("quick_check(1)", "page_count", "page_size")
_JOURNALS: Final = ("-journal", "-wal", "-shm")


def find_backup(file: Path) -> Path:
    """Return where the backup of a store's file is."""
    return file.with_name(file.name + BACKUP)


def find_fault(file: Path, wait: float) -> str:
    """Return what is wrong with the file of a database, empty if nothing is.

    Args:
        file: The file; it exists.
        wait: Seconds to wait for another process that writes.

    Raises:
        sqlite3.OperationalError: If it cannot be opened, or another process writes on and on.
    """
    try:
        with contextlib.closing(sqlite3.connect(file, timeout=wait)) as connection:
            connection.execute("BEGIN")  # nothing is written until the size was looked at
            found = (connection.execute(f"PRAGMA {name}").fetchone()[0] for name in _CHECKS)
            said, pages, size = map(str, found)
            expected, there = int(pages) * int(size), file.stat().st_size
            if said == "ok" and there < expected:  # the end of the last page is not looked at
                said = f"it has {there} bytes, expected {expected}"
    except sqlite3.OperationalError:  # says nothing of the content
        raise
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        said = str(error)
    return "" if said == "ok" else " ".join(said.split())


def back_up(file: Path, wait: float) -> None:
    """Make the backup of a store, unless the store is damaged: then the last good one stays.

    Args:
        file: File of the store.
        wait: Seconds to wait for another process that writes.

    Raises:
        sqlite3.Error: If the store cannot be read, or the backup not be written.
        InfrastructureError: If the disk refuses.
        CorruptStoreError: If the store is damaged.
    """
    kept = find_backup(file)
    with _alone(file), _replacing(kept) as temporary:
        with (
            contextlib.closing(sqlite3.connect(file, timeout=wait)) as source,
            contextlib.closing(sqlite3.connect(temporary)) as target,
        ):
            # Held while it is copied: without it, who writes on and on could keep us waiting.
            source.execute("BEGIN")
            source.execute("SELECT count(*) FROM sqlite_master")
            source.backup(target)
        fault = find_fault(temporary, wait)
        if fault:
            raise CorruptStoreError(f"{file}: damaged: {fault}; {kept} stays as it was")


def restore(file: Path, wait: float) -> str:
    """Put the backup in the place of a damaged store, which is kept beside it.

    Args:
        file: File of the store.
        wait: Seconds to wait for another process that writes.

    Returns:
        What was done, empty if nothing had to be.

    Raises:
        CorruptStoreError: If there is no good backup.
        InfrastructureError: If the disk refuses.
    """
    kept, aside = find_backup(file), file.with_name(file.name + DAMAGED)
    with _alone(file):
        fault = find_damage(file, wait)
        if not fault:  # another process was faster
            return ""
        if not kept.exists() or find_fault(kept, wait):
            raise CorruptStoreError(
                f"{file}: damaged: {fault}; expected a good backup at {kept}; move the file "
                "away and add the runs again: conformance history add reports/runs"
            )
        with _replacing(file) as temporary:
            temporary.write_bytes(kept.read_bytes())
            aside.unlink(missing_ok=True)
            os.link(file, aside)
            for ending in _JOURNALS:  # of the damaged file: in the other one it does harm
                file.with_name(file.name + ending).unlink(missing_ok=True)
    return f"{file}: damaged: {fault}; its last good backup is used, the file is kept as {aside}"


def find_damage(file: Path, wait: float) -> str:
    """Return what is wrong with the file of a store, empty if nothing is or there is none.

    Args:
        file: File of the store.
        wait: Seconds to wait for another process that writes.

    Raises:
        sqlite3.OperationalError: If it cannot be opened, or another process writes on and on.
    """
    if not file.exists():
        return ""
    if not file.stat().st_size:
        return "empty" if find_backup(file).exists() else ""
    return find_fault(file, wait)


@contextlib.contextmanager
def _alone(file: Path) -> Iterator[None]:
    """Let one process at a time replace files."""
    try:
        with FileLock(file.with_name(f".{file.name}.lock")):
            yield
    except OSError as error:
        raise disk_error(file, error) from None


@contextlib.contextmanager
def _replacing(file: Path) -> Iterator[Path]:
    """Yield a name for what takes the place of a file in the end."""
    try:
        with temporary_file(file) as temporary:
            yield temporary
    except OSError as error:
        raise disk_error(file, error) from None
