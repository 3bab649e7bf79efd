"""Version 0001: runs, jobs, states, changes, plans, links."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Make the tables."""
    _make_plans_and_runs()
    op.create_table(
        "states",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("key", sa.String(64), nullable=False, unique=True),
        sa.Column("verdict", sa.String(16), nullable=False),
        sa.Column("outcome", sa.String(16), nullable=False),
        sa.Column("conformance", sa.String(16), nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("cause", sa.Text, nullable=False),
    )
    op.create_table(
        "jobs",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("case", sa.Text, nullable=False),
        sa.Column("place", sa.Text, nullable=False),
        sa.Column("state", sa.Integer, sa.ForeignKey("states.id"), nullable=False),
        sa.UniqueConstraint("case", "place", name="jobs_once"),
    )
    op.create_table(
        "changes",
        sa.Column(
            "job", sa.Integer, sa.ForeignKey("jobs.id"), primary_key=True, autoincrement=False
        ),
        sa.Column("run", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("state", sa.Integer, sa.ForeignKey("states.id"), nullable=False),
        sa.Column("repeated", sa.Boolean, nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_index("changes_by_run", "changes", ["run"])
    op.create_table(
        "links",
        sa.Column("regression", sa.String(16), primary_key=True),
        sa.Column("issue", sa.Text, nullable=False),
        sa.Column("run", sa.Integer, nullable=False),
    )


def _make_plans_and_runs() -> None:
    op.create_table(
        "plans",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("key", sa.String(64), nullable=False, unique=True),
        sa.Column("jobs", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "runs",
        sa.Column("seq", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("started", sa.Text, nullable=False),
        sa.Column("finished", sa.Text, nullable=False),
        sa.Column("exit", sa.Integer),
        sa.Column("matrix", sa.Text, nullable=False),
        sa.Column("part", sa.Text, nullable=False),
        sa.Column("plan", sa.Integer, sa.ForeignKey("plans.id"), nullable=False),
        sa.Column("unexpected", sa.Integer, nullable=False),
        sa.Column("counts", sa.JSON, nullable=False),
        sa.Column("cells", sa.JSON, nullable=False),
        sa.Column("host", sa.JSON, nullable=False),
        sa.Column("versions", sa.JSON, nullable=False),
        sa.UniqueConstraint("name", "started", "finished", name="runs_once"),
    )
