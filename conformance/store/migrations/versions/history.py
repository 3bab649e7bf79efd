"""Version 0001: runs, jobs, states, changes, plans, links."""

from __future__ import annotations

from alembic import op

from conformance.store.schema import metadata

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Make the tables."""
    # As long as no version follows, the schema is this one; a test notices where it changed. The
    # next migration must spell out here what `metadata` held until then.
    metadata.create_all(op.get_bind(), checkfirst=False)
