"""Bringing a store to the newest version of its schema, with alembic.

Imported only where that is needed: most stores are at the newest version, and alembic takes long.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from alembic import command
from alembic.config import Config

if TYPE_CHECKING:
    from sqlalchemy import Connection

MIGRATIONS = Path(__file__).parent / "migrations"


def migrate(connection: Connection) -> None:
    """Make the schema of a store the newest, within the connection's transaction.

    Args:
        connection: In a transaction that writes.
    """
    config = Config()
    # A percent sign begins an interpolation there.
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
