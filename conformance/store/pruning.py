"""Retention: runs that are too old go, what held when the others began stays."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import numpy as np
from sqlalchemy import delete, func, select

from conformance.store import plans, schema

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy import Connection


@dataclass(frozen=True, slots=True, kw_only=True)
class Pruned:
    """What a store was relieved of.

    Attributes:
        runs: How many runs.
        jobs: How many jobs that no run which stays has run.
        changes: How many changes.
    """

    runs: int
    jobs: int
    changes: int


def prune(connection: Connection, before: datetime) -> Pruned:
    """Remove the runs that began before a time, up to the first that did not; the newest stays.

    Args:
        connection: In a transaction that writes.
        before: The time, with its zone.
    """
    runs = schema.runs.c
    rows = connection.execute(select(runs.seq, runs.started).order_by(runs.seq)).all()
    first = _first_kept([(seq, started) for seq, started in rows], before)
    gone = connection.execute(delete(schema.runs).where(runs.seq < first)).rowcount
    used = select(runs.plan)
    connection.execute(delete(schema.plans).where(schema.plans.c.id.not_in(used)))
    changes = _forget_changes(connection, first)
    jobs, more = _forget_jobs(connection)
    kept = schema.states.c.id
    unused = kept.not_in(select(schema.changes.c.state)), kept.not_in(select(schema.jobs.c.state))
    connection.execute(delete(schema.states).where(*unused))
    return Pruned(runs=gone, jobs=jobs, changes=changes + more)


def _first_kept(runs: Sequence[tuple[int, str]], before: datetime) -> int:
    """Return the number of the first run that stays; 0 if there is none at all."""
    for seq, started in runs:
        if not _is_before(started, before) or seq == runs[-1][0]:
            return seq
    return 0


def _is_before(started: str, before: datetime) -> bool:
    """Say whether a run began before a time; one of which that is not known did not."""
    try:
        time = datetime.fromisoformat(started)
    except ValueError:
        return False
    return (time.replace(tzinfo=UTC) if time.tzinfo is None else time) < before


def _forget_changes(connection: Connection, first: int) -> int:
    """Remove all changes from before a run but the last one of each job."""
    changes = schema.changes.c
    other = schema.changes.alias()
    last = (
        select(func.max(other.c.run))
        .where(other.c.job == changes.job, other.c.run < first)
        .scalar_subquery()
    )
    old = delete(schema.changes).where(changes.run < first, changes.run < last)
    return connection.execute(old).rowcount


def _forget_jobs(connection: Connection) -> tuple[int, int]:
    """Remove the jobs that no run has run, with their changes."""
    ran = [
        plans.unpacked(kept) for kept in connection.execute(select(schema.plans.c.jobs)).scalars()
    ]
    every = connection.execute(select(schema.jobs.c.id)).scalars().all()
    idle = np.setdiff1d(np.array(every, np.int64), np.concatenate(ran) if ran else []).tolist()
    changes = 0
    for start in range(0, len(idle), 500):
        some = idle[start : start + 500]
        found = connection.execute(delete(schema.changes).where(schema.changes.c.job.in_(some)))
        changes += found.rowcount
        connection.execute(delete(schema.jobs).where(schema.jobs.c.id.in_(some)))
    return len(idle), changes
