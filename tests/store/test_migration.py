"""The schema: made by the migrations, of a version that is known."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import text

from conformance.errors import UsageError
from conformance.store.backup import find_backup
from conformance.store.database import Database, parse_address
from conformance.store.migration import MIGRATIONS
from conformance.store.schema import VERSION, VERSION_TABLE, metadata
from tests.store.conftest import opened
from tests.store.nights import FINE, night, one

if TYPE_CHECKING:
    from pathlib import Path


def test_the_newest_version_is_that_of_the_last_migration() -> None:
    """Which knows all before it."""
    assert ScriptDirectory(str(MIGRATIONS)).get_current_head() == VERSION


def test_tables_change_by_a_migration_alone() -> None:
    """Stores of version 0001 have these; what changes them is a migration, and another version."""
    columns = [
        f"{table.name} {column.name} {column.type!r} {column.nullable} {column.primary_key}"
        for table in metadata.sorted_tables
        for column in table.c
    ]
    found = hashlib.sha256("\n".join(sorted(columns)).encode()).hexdigest()
    assert (VERSION, found[:12]) == ("0001", "9425583da436")


def test_migrations_make_the_tables(where: str) -> None:
    """Those that the code uses, column by column; a second time nothing happens."""
    opened(where)
    opened(where)
    with Database(parse_address(where)).open_reader() as connection:
        context = MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE})
        assert compare_metadata(context, metadata) == []
        assert context.get_current_revision() == VERSION


def test_an_empty_file_becomes_a_store(tmp_path: Path) -> None:
    """As one is that was killed when it was made."""
    file = tmp_path / "history.db"
    file.touch()
    assert opened(str(file)).add(night(1, one(FINE))) == [1]


def test_a_newer_version_is_refused(where: str) -> None:
    """One clear error; nothing is changed."""
    store = opened(where)
    with Database(parse_address(where)).open_writer() as connection:
        connection.execute(text("UPDATE conformance_version SET version_num = '0999'"))
    with pytest.raises(UsageError, match=rf"version 0999, expected {VERSION} at most; a newer"):
        opened(where)
    assert store.load_runs() == []


def test_what_fails_half_way_leaves_nothing(where: str) -> None:
    """A table of another's is in the way of the last one."""
    database = Database(parse_address(where))
    with database.open_writer() as connection:
        connection.execute(text("CREATE TABLE links (id INTEGER)"))
    with pytest.raises(Exception, match="links"):
        database.migrate()
    with database.open_reader() as connection:
        context = MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE})
        assert context.get_current_revision() is None
        names = context.dialect.get_table_names(connection)
    assert names == ["links"]


def test_a_backup_is_made_by_what_writes(tmp_path: Path) -> None:
    """It is a store itself."""
    file = tmp_path / "history.db"
    opened(str(file)).add(night(1, one(FINE)))
    assert [run.name for run in opened(str(find_backup(file))).load_runs()] == ["night-1"]
