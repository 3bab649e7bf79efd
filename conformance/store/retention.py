"""Retention: old runs are removed, the states before the first remaining run are kept."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from sqlalchemy import bindparam, delete, func, select

from conformance.store import schema

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy import Connection, Delete, Table


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovedRuns:
    """The numbers of removed rows.

    Attributes:
        runs: Number of runs.
        jobs: Number of jobs that no remaining run has.
        changes: Number of changes.
    """

    runs: int
    jobs: int
    changes: int


def prune(connection: Connection, before: datetime) -> RemovedRuns:
    """Remove the runs that began before a time, up to the first that did not; the newest stays.

    Args:
        connection: Connection in a transaction that writes.
        before: The time, with its zone.
    """
    tables = (schema.runs, schema.jobs, schema.changes)
    sizes = [_count_rows(connection, table) for table in tables]
    runs, states = schema.runs.c, schema.states.c.id
    rows = connection.execute(select(runs.seq, runs.started).order_by(runs.seq)).all()
    first = _find_first_kept([(seq, started) for seq, started in rows], before)
    # Referring rows first: PostgreSQL checks foreign keys at each statement.
    for obsolete in (
        delete(schema.runs).where(runs.seq < first),
        delete(schema.plans).where(schema.plans.c.id.not_in(select(runs.plan))),
        _delete_old_changes(first),
    ):
        connection.execute(obsolete)
    _remove_jobs(connection)
    unused = (states.not_in(select(table.c.state)) for table in (schema.changes, schema.jobs))
    connection.execute(delete(schema.states).where(*unused))
    remaining = [_count_rows(connection, table) for table in tables]
    return RemovedRuns(
        **{
            str(table): size - now
            for table, size, now in zip(tables, sizes, remaining, strict=True)
        }
    )


def _count_rows(connection: Connection, table: Table) -> int:
    return connection.execute(select(func.count()).select_from(table)).scalar_one()


def _find_first_kept(runs: Sequence[tuple[int, str]], before: datetime) -> int:
    """Return the number of the first run that stays; 0 without runs."""
    for seq, started in runs:
        # Only the beginning can be removed: changes are relative to the run before. The newest run
        # stays, as the next one is compared with it.
        if not _is_before(started, before) or seq == runs[-1][0]:
            return seq
    return 0


def _is_before(started: str, before: datetime) -> bool:
    """Say whether a run began before a time; a run with an unreadable date is kept."""
    try:
        time = datetime.fromisoformat(started)
    except ValueError:
        return False
    return (time.replace(tzinfo=UTC) if time.tzinfo is None else time) < before


def _delete_old_changes(first: int) -> Delete:
    """Return the statement that removes changes before a run, except the last of each job."""
    changes = schema.changes.c
    other = schema.changes.alias()
    last = (
        select(func.max(other.c.run))
        .where(other.c.job == changes.job, other.c.run < first)
        .scalar_subquery()
    )
    return delete(schema.changes).where(changes.run < first, changes.run < last)


def _remove_jobs(connection: Connection) -> None:
    """Remove the jobs that no remaining run has, with their changes."""
    # Not in SQL: plans are compressed arrays.
    ran = map(schema.unpack_jobs, connection.execute(select(schema.plans.c.jobs)).scalars())
    every = connection.execute(select(schema.jobs.c.id)).scalars()
    idle = {*every}.difference(*(jobs.tolist() for jobs in ran))
    for column in (schema.changes.c.job, schema.jobs.c.id):
        if idle:
            statement = delete(column.table).where(column == bindparam("idle"))
            # One row each, not IN: databases limit the number of parameters of a statement.
            connection.execute(statement, [{"idle": job} for job in idle])
