"""Transactions on the database of a store, and the user's errors for what goes wrong there."""

from __future__ import annotations

import contextlib
import errno
import importlib
import os
import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import String, create_engine, event, inspect, select, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool
from sqlalchemy.sql.expression import column, table

from conformance.errors import ConformanceError, InfrastructureError, UsageError
from conformance.files import disk_error
from conformance.locking import PATIENCE, lock_file
from conformance.store.schema import VERSION, VERSION_TABLE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sqlalchemy import Connection, Engine

    from conformance.store.address import Address

WAIT: Final = 30.0
"""Seconds to wait for another process that writes."""
_MIGRATING: Final = "conformance.store.migration"
_LOCK: Final = 0x6A61785F
"""Number of the lock, among those of a PostgreSQL database, that whoever writes holds."""
_ACTING: Final = _LOCK + 1
"""Likewise of whoever acts on what the database says."""
_HELD: Final = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
_DAMAGED: Final = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
_DISK: Final = {
    sqlite3.SQLITE_FULL: errno.ENOSPC,
    sqlite3.SQLITE_IOERR: errno.EIO,
    sqlite3.SQLITE_READONLY: errno.EROFS,
    sqlite3.SQLITE_CANTOPEN: errno.EACCES,
    sqlite3.SQLITE_PERM: errno.EACCES,
}
_LOCK_NOT_AVAILABLE: Final = "55P03"


class CorruptStoreError(ConformanceError):
    """A store that cannot be read."""


class Database:
    """The database of a store.

    Args:
        address: Where it is.
        wait: Seconds to wait for another process that writes.
    """

    def __init__(self, address: Address, wait: float = WAIT) -> None:
        self.address = address
        self.wait = wait
        self._engine = (
            _open_server(address, wait) if address.file is None else _open_file(address, wait)
        )

    @contextlib.contextmanager
    def reading(self) -> Iterator[Connection]:
        """Yield a connection that sees one state of the database throughout.

        Raises:
            ConformanceError: If the database cannot be used.
        """
        with self._transaction(writing=False) as connection:
            yield connection

    @contextlib.contextmanager
    def writing(self) -> Iterator[Connection]:
        """Yield a connection that alone writes; all of it counts in the end, or nothing.

        Raises:
            ConformanceError: If the database cannot be used.
        """
        with self._transaction(writing=True) as connection:
            if self.address.file is None:
                connection.execute(text(f"SET LOCAL lock_timeout = {int(self.wait * 1000)}"))
                connection.execute(text(f"SELECT pg_advisory_xact_lock({_LOCK})"))
            yield connection

    @contextlib.contextmanager
    def _transaction(self, *, writing: bool) -> Iterator[Connection]:
        options: dict[str, Any] = {"writing": writing}
        if self.address.file is None and not writing:
            options["isolation_level"] = "REPEATABLE READ"
        with (
            self._translate_errors(),
            self._engine.connect().execution_options(**options) as connection,
            connection.begin(),
        ):
            yield connection

    @contextlib.contextmanager
    def alone(self, inform: Callable[[str], None], patience: float = PATIENCE) -> Iterator[None]:
        """Hold the right to act on what the database says, while others may read and write it.

        Args:
            inform: Receives one line if another process holds it.
            patience: How long to wait, in seconds.

        Raises:
            ConformanceError: If it cannot be had.
        """
        if self.address.file is not None:
            with lock_file(self.address.file, inform, patience):
                yield
            return
        with self._translate_errors(), self._engine.connect() as connection:
            # No transaction: the server may end those in which nothing happens for long.
            held = connection.execution_options(isolation_level="AUTOCOMMIT", writing=False)
            held.execute(text(f"SET lock_timeout = {int(patience * 1000)}"))
            if not held.execute(text(f"SELECT pg_try_advisory_lock({_ACTING})")).scalar_one():
                inform(f"{self.address.name}: waiting for another process that acts on it")
                held.execute(text(f"SELECT pg_advisory_lock({_ACTING})"))
            yield

    def migrate(self) -> None:
        """Bring the schema to the newest version.

        Raises:
            UsageError: If it is of a newer version than the newest that is known.
            ConformanceError: If the database cannot be used.
        """
        with self.reading() as connection:
            if self._version(connection) == VERSION:
                return
        with self.writing() as connection:
            if self._version(connection) != VERSION:
                importlib.import_module(_MIGRATING).migrate(connection)

    def _version(self, connection: Connection) -> str:
        """Return the version of the schema, empty where there is none yet."""
        if not inspect(connection).has_table(VERSION_TABLE):
            return ""
        query = select(column("version_num", String)).select_from(table(VERSION_TABLE))
        version = str(connection.execute(query).scalar_one_or_none() or "")
        if version > VERSION:
            raise UsageError(
                f"{self.address.name}: its schema is version {version}, expected {VERSION} at "
                "most; a newer jax-conformance wrote it: use that one"
            )
        return version

    @contextlib.contextmanager
    def _translate_errors(self) -> Iterator[None]:
        try:
            yield
        except DBAPIError as error:
            raise self._make_error(error) from None  # its text may hold what was sent

    def _make_error(self, error: DBAPIError) -> ConformanceError:
        cause = error.orig
        if isinstance(cause, sqlite3.Error):
            return self.error_of_file(cause)
        if getattr(cause, "sqlstate", None) == _LOCK_NOT_AVAILABLE:
            return self._make_lock_error()
        said = self.address.hidden(" ".join(str(cause).split()))
        return InfrastructureError(
            f"{self.address.name}: {said}; check the address, and that the server runs"
        )

    def error_of_file(self, error: sqlite3.Error) -> ConformanceError:
        """Return the user's error for one of SQLite.

        Args:
            error: What SQLite said.
        """
        file = self.address.file or Path(self.address.name)
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
        if code in _HELD:
            return self._make_lock_error()
        if code in _DAMAGED:
            return CorruptStoreError(
                f"{file}: damaged: {error}; try again: its last good backup is used then"
            )
        if code in _DISK:
            number = _DISK[code]
            return disk_error(file, OSError(number, os.strerror(number)))
        return CorruptStoreError(f"{file}: expected a store of runs: {str(error).lower()}")

    def _make_lock_error(self) -> InfrastructureError:
        return InfrastructureError(
            f"{self.address.name}: another process has been writing to it for {self.wait:g} s; "
            "try again when that has ended"
        )


def _open_file(address: Address, wait: float) -> Engine:
    # Connections are closed after use, so that the file may be replaced between two.
    engine = create_engine(address.url, poolclass=NullPool, connect_args={"timeout": wait})

    def _set_autocommit(connection: sqlite3.Connection, _: object) -> None:
        # Python's own transactions begin late, and end where the schema changes.
        connection.isolation_level = None

    def _begin(connection: Connection) -> None:
        writing = connection.get_execution_options().get("writing", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writing else "BEGIN")

    event.listen(engine, "connect", _set_autocommit)
    event.listen(engine, "begin", _begin)
    return engine


def _open_server(address: Address, wait: float) -> Engine:
    try:
        return create_engine(
            address.url, poolclass=NullPool, connect_args={"connect_timeout": max(2, int(wait))}
        )
    except ModuleNotFoundError:
        raise UsageError(
            f"{address.name}: the driver of PostgreSQL is not installed; "
            "pip install 'jax-conformance[postgres]'"
        ) from None
