"""The database of a store: its address, its transactions, and its errors as the user's."""

from __future__ import annotations

import contextlib
import errno
import importlib
import os
import sqlite3
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote_plus

from sqlalchemy import String, create_engine, event, inspect, select, text
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError
from sqlalchemy.pool import NullPool
from sqlalchemy.sql.expression import column, table

from conformance.cells.secret_masking import mask_text
from conformance.errors import ConformanceError, InfrastructureError, UsageError
from conformance.files import disk_error
from conformance.locking import PATIENCE, lock_file
from conformance.store.schema import VERSION, VERSION_TABLE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sqlalchemy import Connection, Engine


SERVERS: Final = {"postgresql", "postgres", "postgresql+psycopg"}
"""Schemes of URLs of PostgreSQL."""
DRIVER: Final = "postgresql+psycopg"
_SECRET: Final = ("password", "passfile", "sslpassword")
MASK: Final = "***"


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """The address of a store.

    Attributes:
        name: Name in messages, without credentials.
        url: URL for SQLAlchemy; never shown.
        file: The file; None for the database of a server.
    """

    name: str
    url: URL = field(repr=False)
    file: Path | None = None

    def mask(self, text: str) -> str:
        """Return a text without the credentials of this address.

        Args:
            text: Message of a driver or a server.
        """
        values = [self.url.password, *(self.url.query.get(name) for name in _SECRET)]
        secrets = {value for value in values if isinstance(value, str) and value}
        # The longest first: one secret may be the beginning of another.
        for secret in sorted(secrets | set(map(quote_plus, secrets)), key=len, reverse=True):
            text = text.replace(secret, MASK)
        return mask_text(text)


def parse_address(text: str) -> Address:
    """Return the address of a store.

    Args:
        text: Path of a file, or `postgresql://user:password@host/database`.

    Raises:
        UsageError: If it is a URL that cannot be read, or of another kind of database.
    """
    if "://" not in text:
        file = Path(text).expanduser().absolute()
        return Address(name=text, url=URL.create("sqlite", database=str(file)), file=file)
    scheme = text.partition("://")[0]
    if scheme not in SERVERS:
        # The scheme is not shown: it may be a credential that was put there by mistake.
        raise UsageError(
            "store ...://...: expected a path or postgresql://USER:PASSWORD@HOST/DATABASE"
        )
    try:
        url = make_url(text).set(drivername=DRIVER)
    except (ArgumentError, ValueError):  # their messages quote the URL
        raise UsageError(
            f"store {scheme}://...: cannot be read; expected "
            f"{scheme}://USER:PASSWORD@HOST/DATABASE, in it @, : and / of a password as %40, "
            "%3A and %2F"
        ) from None
    shown = URL.create("postgresql", host=url.host, port=url.port, database=url.database)
    return Address(name=shown.render_as_string(), url=url)


WAIT: Final = 30.0
"""Seconds to wait for another process that writes."""
_MIGRATING: Final = "conformance.store.migration"
_LOCK: Final = 0x6A61785F
"""Number of the advisory lock of PostgreSQL that a writer holds."""
_ACTING: Final = _LOCK + 1
"""Number of the advisory lock for actions that depend on the content of the database."""
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
    """The store cannot be read."""


class Database:
    """The database of a store.

    Args:
        address: Address of the store.
        wait: Seconds to wait for another process that writes.
    """

    def __init__(self, address: Address, wait: float = WAIT) -> None:
        self.address = address
        self.wait = wait
        self._engine = (
            _open_server(address, wait) if address.file is None else _open_file(address, wait)
        )

    @contextlib.contextmanager
    def open_reader(self) -> Iterator[Connection]:
        """Yield a connection that sees one state of the database throughout.

        Raises:
            ConformanceError: If the database cannot be used.
        """
        with self._begin_transaction(writing=False) as connection:
            yield connection

    @contextlib.contextmanager
    def open_writer(self) -> Iterator[Connection]:
        """Yield the only connection that writes; all of its changes are kept, or none.

        Raises:
            ConformanceError: If the database cannot be used.
        """
        with self._begin_transaction(writing=True) as connection:
            if self.address.file is None:
                connection.execute(text(f"SET LOCAL lock_timeout = {int(self.wait * 1000)}"))
                # One writer, as with a file: run numbers are computed from the newest run.
                connection.execute(text(f"SELECT pg_advisory_xact_lock({_LOCK})"))
            yield connection

    @contextlib.contextmanager
    def _begin_transaction(self, *, writing: bool) -> Iterator[Connection]:
        options: dict[str, Any] = {"writing": writing}
        if self.address.file is None and not writing:
            # The default of PostgreSQL, READ COMMITTED, shows each statement another state.
            options["isolation_level"] = "REPEATABLE READ"
        with (
            self._translate_errors(),
            self._engine.connect().execution_options(**options) as connection,
            connection.begin(),
        ):
            yield connection

    @contextlib.contextmanager
    def lock_actions(
        self, inform: Callable[[str], None], patience: float = PATIENCE
    ) -> Iterator[None]:
        """Hold the exclusive right to act on the content, while others may read and write it.

        Args:
            inform: Receives one line if another process holds it.
            patience: Seconds to wait.

        Raises:
            ConformanceError: If another process keeps it too long.
        """
        if self.address.file is not None:
            with lock_file(self.address.file, inform, patience):
                yield
            return
        with self._translate_errors(), self._engine.connect() as connection:
            # No transaction: the server may end idle ones, see idle_in_transaction_session_timeout.
            session = connection.execution_options(isolation_level="AUTOCOMMIT", writing=False)
            session.execute(text(f"SET lock_timeout = {int(patience * 1000)}"))
            if not session.execute(text(f"SELECT pg_try_advisory_lock({_ACTING})")).scalar_one():
                inform(f"{self.address.name}: waiting for another process that acts on it")
                session.execute(text(f"SELECT pg_advisory_lock({_ACTING})"))
            yield

    def migrate(self) -> None:
        """Bring the schema to the newest version.

        Raises:
            UsageError: If a newer version of this project has written it.
            ConformanceError: If the database cannot be used.
        """
        with self.open_reader() as connection:
            # Read first: most stores are at the newest version, and readers must not wait for a
            # writer.
            if self._read_version(connection) == VERSION:
                return
        with self.open_writer() as connection:
            if self._read_version(connection) != VERSION:
                importlib.import_module(_MIGRATING).migrate(connection)

    def _read_version(self, connection: Connection) -> str:
        """Return the version of the schema, empty if there is none yet."""
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
            raise self._make_error(error) from None  # the cause would show the parameters

    def _make_error(self, error: DBAPIError) -> ConformanceError:
        cause = error.orig
        if isinstance(cause, sqlite3.Error):
            return self.make_file_error(cause)
        if getattr(cause, "sqlstate", None) == _LOCK_NOT_AVAILABLE:
            return self._make_lock_error()
        message = self.address.mask(" ".join(str(cause).split()))
        return InfrastructureError(
            f"{self.address.name}: {message}; check the address, and that the server runs"
        )

    def make_file_error(self, error: sqlite3.Error) -> ConformanceError:
        """Return the user's error for an error of SQLite.

        Args:
            error: The error of SQLite.
        """
        file = self.address.file or Path(self.address.name)
        # The lower byte: extended codes, e.g. SQLITE_BUSY_SNAPSHOT, add details above it.
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
        if code in _HELD:
            return self._make_lock_error()
        if code in _DAMAGED:
            return CorruptStoreError(
                f"{file}: damaged: {error}; try again: its last good backup will be used"
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
    # No pool: the file may be replaced by its backup between two connections.
    engine = create_engine(address.url, poolclass=NullPool, connect_args={"timeout": wait})

    def _set_autocommit(connection: sqlite3.Connection, _: object) -> None:
        # sqlite3 would begin transactions at the first write, and commit before a schema change.
        connection.isolation_level = None

    def _begin(connection: Connection) -> None:
        writing = connection.get_execution_options().get("writing", False)
        # IMMEDIATE: two writers that began by reading could not both get the lock, and one would
        # fail.
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
