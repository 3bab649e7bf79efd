"""Migration of a store to the newest version of its schema, with Alembic.

Imported only if needed: most stores have the newest version, and importing Alembic is slow.
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
    """Migrate the schema of a store within the connection's transaction.

    Args:
        connection: Connection in a transaction that writes.
    """
    config = Config()
    # A percent sign begins an interpolation of configparser.
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
