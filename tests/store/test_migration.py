"""Migrations of the schema to a known version."""

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
from tests.store.conftest import open_store
from tests.store.nights import FINE, night, one

if TYPE_CHECKING:
    from pathlib import Path


def test_version_is_that_of_the_last_migration() -> None:
    """The head of the migrations is `VERSION`."""
    assert ScriptDirectory(str(MIGRATIONS)).get_current_head() == VERSION


def test_tables_of_version_0001_do_not_change() -> None:
    """A change of the tables needs a migration and another version."""
    columns = [
        f"{table.name} {column.name} {column.type!r} {column.nullable} {column.primary_key}"
        for table in metadata.sorted_tables
        for column in table.c
    ]
    found = hashlib.sha256("\n".join(sorted(columns)).encode()).hexdigest()
    assert (VERSION, found[:12]) == ("0001", "9425583da436")


def test_migrations_create_the_tables(where: str) -> None:
    """Those of the schema, column by column; a second migration changes nothing."""
    open_store(where)
    open_store(where)
    with Database(parse_address(where)).open_reader() as connection:
        context = MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE})
        assert compare_metadata(context, metadata) == []
        assert context.get_current_revision() == VERSION


def test_empty_file_becomes_a_store(tmp_path: Path) -> None:
    """As a process leaves it that is killed during creation."""
    file = tmp_path / "history.db"
    file.touch()
    assert open_store(str(file)).add(night(1, one(FINE))) == [1]


def test_newer_version_is_a_usage_error(where: str) -> None:
    """Nothing is changed."""
    store = open_store(where)
    with Database(parse_address(where)).open_writer() as connection:
        connection.execute(text("UPDATE conformance_version SET version_num = '0999'"))
    with pytest.raises(UsageError, match=rf"version 0999, expected {VERSION} at most; a newer"):
        open_store(where)
    assert store.load_runs() == []


def test_failed_migration_leaves_no_tables(where: str) -> None:
    """A foreign table has the name of the last one."""
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


def test_write_makes_a_backup(tmp_path: Path) -> None:
    """The backup is a store itself."""
    file = tmp_path / "history.db"
    open_store(str(file)).add(night(1, one(FINE)))
    assert [run.name for run in open_store(str(find_backup(file))).load_runs()] == ["night-1"]
