"""The tables of a store, at the newest version of its schema."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final

import numpy as np
import zstandard
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

from conformance.compression import decompress

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Jobs = NDArray[np.int64]


VERSION: Final = "0001"
"""The newest version: that of the last migration."""
# Not Alembic's default name: other applications may use the same database.
VERSION_TABLE: Final = "conformance_version"

metadata: Final = MetaData()

plans: Final = Table(
    "plans",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("key", String(64), nullable=False, unique=True),
    Column("jobs", LargeBinary, nullable=False),
)
"""Sets of jobs that ran, deduplicated by the hash of their content."""

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
"""Runs in the order in which they were added, not by date."""

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
"""States of jobs, deduplicated by the hash of their content."""

jobs: Final = Table(
    "jobs",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("case", Text, nullable=False),
    Column("place", Text, nullable=False),
    Column("state", ForeignKey("states.id"), nullable=False),
    UniqueConstraint("case", "place", name="jobs_once"),
)
"""Cases in places, with the latest state of each."""

changes: Final = Table(
    "changes",
    metadata,
    Column("job", ForeignKey("jobs.id"), primary_key=True, autoincrement=False),
    # No foreign key: the last change before the first remaining run outlives its own run.
    Column("run", Integer, primary_key=True, autoincrement=False),
    Column("state", ForeignKey("states.id"), nullable=False),
    Column("repeated", Boolean, nullable=False),
    Index("changes_by_run", "run"),
    # Stored in the order of the key: with row ids SQLite would store each key twice.
    sqlite_with_rowid=False,
)
"""States of jobs in runs that differ from the state before, and whether they were repeated."""

links: Final = Table(
    "links",
    metadata,
    Column("regression", String(16), primary_key=True),
    Column("issue", Text, nullable=False),
    Column("run", Integer, nullable=False),
)
"""Issues of regressions, with the newest run at the time of the link."""


# Little-endian on every machine: keys are hashes of these bytes.
_STEP_TYPE: Final = np.dtype("<u4")


def pack_jobs(jobs: Jobs) -> tuple[str, bytes]:
    """Return the key of a plan, and its compressed content.

    Args:
        jobs: Ids of its jobs, ascending, from 1, shape (jobs,).
    """
    # Jobs of one run get consecutive ids: differences of 1 compress to almost nothing.
    steps = np.diff(jobs, prepend=0).astype(_STEP_TYPE).tobytes()
    return hashlib.sha256(steps).hexdigest(), zstandard.compress(steps, 6)


def unpack_jobs(packed: bytes) -> Jobs:
    """Return the ids of the jobs of a plan, ascending.

    Args:
        packed: The compressed content.
    """
    return np.cumsum(np.frombuffer(decompress(packed), _STEP_TYPE), dtype=np.int64)
