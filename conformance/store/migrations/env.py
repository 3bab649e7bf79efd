"""The environment of alembic: migrations run in the transaction of the given connection."""

from __future__ import annotations

from alembic import context

from conformance.store.schema import VERSION_TABLE, metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    version_table=VERSION_TABLE,
    # SQLite can undo what changes the schema, too: nothing is left half made.
    transactional_ddl=True,
)
context.run_migrations()
