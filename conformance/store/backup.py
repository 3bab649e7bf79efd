"""The backup next to a store's file: made after each write, used when the file is damaged."""

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
    """Return the path of the backup of a store's file."""
    return file.with_name(file.name + BACKUP)


def find_fault(file: Path, wait: float) -> str:
    """Return the damage of the file of a database, empty if it is intact.

    Args:
        file: The file; it exists.
        wait: Seconds to wait for another process that writes.

    Raises:
        sqlite3.OperationalError: If it cannot be opened, or another process keeps writing.
    """
    try:
        with contextlib.closing(sqlite3.connect(file, timeout=wait)) as connection:
            connection.execute("BEGIN")  # the size must not change between the checks
            found = (connection.execute(f"PRAGMA {name}").fetchone()[0] for name in _CHECKS)
            fault, pages, size = map(str, found)
            expected, actual = int(pages) * int(size), file.stat().st_size
            if fault == "ok" and actual < expected:  # quick_check misses the end of the last page
                fault = f"it has {actual} bytes, expected {expected}"
    except sqlite3.OperationalError:  # e.g. locked: not a sign of damage
        raise
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        fault = str(error)
    return "" if fault == "ok" else " ".join(fault.split())


def back_up(file: Path, wait: float) -> None:
    """Make the backup of a store, unless the store is damaged: then the last good backup stays.

    Args:
        file: File of the store.
        wait: Seconds to wait for another process that writes.

    Raises:
        sqlite3.Error: If the store cannot be read, or the backup not be written.
        InfrastructureError: If the disk refuses.
        CorruptStoreError: If the store is damaged.
    """
    backup = find_backup(file)
    with _lock_replacement(file), _replace_at_end(backup) as temporary:
        with (
            contextlib.closing(sqlite3.connect(file, timeout=wait)) as source,
            contextlib.closing(sqlite3.connect(temporary)) as target,
        ):
            # A read transaction: SQLite restarts a backup at each write of another process.
            source.execute("BEGIN")
            source.execute("SELECT count(*) FROM sqlite_master")
            source.backup(target)
        fault = find_fault(temporary, wait)
        if fault:
            raise CorruptStoreError(f"{file}: damaged: {fault}; {backup} is unchanged")


def restore(file: Path, wait: float) -> str:
    """Replace a damaged store by its backup, and keep the damaged file next to it.

    Args:
        file: File of the store.
        wait: Seconds to wait for another process that writes.

    Returns:
        A message about the repair, empty if none was needed.

    Raises:
        CorruptStoreError: If there is no good backup.
        InfrastructureError: If the disk refuses.
    """
    backup, aside = find_backup(file), file.with_name(file.name + DAMAGED)
    with _lock_replacement(file):
        fault = find_damage(file, wait)
        if not fault:  # another process has restored it
            return ""
        if not backup.exists() or find_fault(backup, wait):
            raise CorruptStoreError(
                f"{file}: damaged: {fault}; expected a good backup at {backup}; move the file "
                "away and add the runs again: conformance history add reports/runs"
            )
        with _replace_at_end(file) as temporary:
            temporary.write_bytes(backup.read_bytes())
            aside.unlink(missing_ok=True)
            # A link, not a rename: the store exists at every moment, and is replaced atomically.
            os.link(file, aside)
            for ending in _JOURNALS:  # SQLite would apply them to the restored file
                file.with_name(file.name + ending).unlink(missing_ok=True)
    return f"{file}: damaged: {fault}; its last good backup is used, the file is kept as {aside}"


def find_damage(file: Path, wait: float) -> str:
    """Return the damage of the file of a store, empty if it is intact or does not exist.

    Args:
        file: File of the store.
        wait: Seconds to wait for another process that writes.

    Raises:
        sqlite3.OperationalError: If it cannot be opened, or another process keeps writing.
    """
    if not file.exists():
        return ""
    if not file.stat().st_size:
        return "empty" if find_backup(file).exists() else ""
    return find_fault(file, wait)


@contextlib.contextmanager
def _lock_replacement(file: Path) -> Iterator[None]:
    """Hold the lock under which one process at a time replaces the store or its backup."""
    try:
        with FileLock(file.with_name(f".{file.name}.lock")):
            yield
    except OSError as error:
        raise disk_error(file, error) from None


@contextlib.contextmanager
def _replace_at_end(file: Path) -> Iterator[Path]:
    """Yield the name of a file that replaces another at the end."""
    try:
        with temporary_file(file) as temporary:
            yield temporary
    except OSError as error:
        raise disk_error(file, error) from None
