"""The tables of a store, at the newest version of its schema."""

from __future__ import annotations

from typing import Final

from sqlalchemy import (
    JSON,
    Boolean,
    Column,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
)

VERSION: Final = "0001"
"""The newest version: that of the last migration."""
VERSION_TABLE: Final = "conformance_version"

metadata: Final = MetaData()

plans: Final = Table(
    "plans",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("key", String(64), nullable=False, unique=True),
    Column("jobs", LargeBinary, nullable=False),
)
"""Sets of jobs that ran, each once, by the hash of its content."""

runs: Final = Table(
    "runs",
    metadata,
    Column("seq", Integer, primary_key=True, autoincrement=False),
    Column("name", Text, nullable=False),
    Column("started", Text, nullable=False),
    Column("finished", Text, nullable=False),
    Column("exit", Integer),
    Column("matrix", Text, nullable=False),
    Column("part", Text, nullable=False),
    Column("plan", ForeignKey("plans.id"), nullable=False),
    Column("unexpected", Integer, nullable=False),
    Column("counts", JSON, nullable=False),
    Column("cells", JSON, nullable=False),
    Column("host", JSON, nullable=False),
    Column("versions", JSON, nullable=False),
    UniqueConstraint("name", "started", "finished", name="runs_once"),
)
"""Runs in the order they were added, which the clock has no part in."""

states: Final = Table(
    "states",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("key", String(64), nullable=False, unique=True),
    Column("verdict", String(16), nullable=False),
    Column("outcome", String(16), nullable=False),
    Column("conformance", String(16), nullable=False),
    Column("reason", Text, nullable=False),
    Column("cause", Text, nullable=False),
)
"""What may be known of a job, each once, by the hash of its content."""

jobs: Final = Table(
    "jobs",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("case", Text, nullable=False),
    Column("place", Text, nullable=False),
    Column("state", ForeignKey("states.id"), nullable=False),
    UniqueConstraint("case", "place", name="jobs_once"),
)
"""Cases in places, with what was known last of each."""

changes: Final = Table(
    "changes",
    metadata,
    Column("job", ForeignKey("jobs.id"), primary_key=True, autoincrement=False),
    # Of a run that is no longer kept, too: what held then is the beginning.
    Column("run", Integer, primary_key=True, autoincrement=False),
    Column("state", ForeignKey("states.id"), nullable=False),
    Column("repeated", Boolean, nullable=False),
    Index("changes_by_run", "run"),
    sqlite_with_rowid=False,
)
"""What a run showed of a job, where that is not what was known; whether several times."""

links: Final = Table(
    "links",
    metadata,
    Column("regression", String(16), primary_key=True),
    Column("issue", Text, nullable=False),
    Column("run", Integer, nullable=False),
)
"""Issues of regressions, with the newest run when each was linked."""
