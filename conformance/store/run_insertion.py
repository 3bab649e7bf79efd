"""Adding a run to a store: only differences from the known states make rows."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Any, Final

import msgspec
import numpy as np
from sqlalchemy import bindparam, func, insert, select, update

from conformance.cells.nightly import make_stable_cell_ids
from conformance.errors import UsageError
from conformance.store import schema

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sqlalchemy import Column, Connection, Table

    from conformance.engine.runs.digests import Digest, JobState
    from conformance.engine.runs.directory import RunDirectory

    JobStates = dict[tuple[str, str], tuple[int, bool]]


class _Info(msgspec.Struct):
    """The part of `run.json` that a digest lacks."""

    host: dict[str, Any] = msgspec.field(default_factory=dict)
    versions: dict[str, str] = msgspec.field(default_factory=dict)


class _Job(msgspec.Struct, frozen=True, gc=False):
    """The part of a line of `results.jsonl` that a digest lacks."""

    case: str
    cell: str
    attempts: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreEntry:
    """A run to be added to a store.

    Attributes:
        digest: Digest of its jobs.
        repeated: Case and cell of the jobs that ran several times, which confirms their state.
        host: Facts of the host.
        versions: Versions of this project, its kit and the Python it ran on.
    """

    digest: Digest
    repeated: frozenset[tuple[str, str]] = frozenset()
    host: dict[str, Any] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)


def make_entry(directory: RunDirectory, digest: Digest) -> StoreEntry:
    """Return a run in the form that is added to a store.

    Args:
        directory: Directory of the run.
        digest: Digest of its jobs.

    Raises:
        CorruptRunError: If it cannot be read.
        UsageError: If it did not finish: later runs cannot be compared with a part of a run.
    """
    if not digest.finished:
        raise UsageError(
            f"{directory.path}: the run did not end, expected one that did; "
            f"conformance run --resume --run {directory.path}"
        )
    info = directory.read_run_as(_Info)
    jobs = directory.read_records_as(_Job)
    return StoreEntry(
        digest=digest,
        repeated=frozenset((job.case, job.cell) for job in jobs if job.attempts > 1),
        host=info.host,
        versions=info.versions,
    )


# PostgreSQL refuses NUL in texts, and surrogates have no UTF-8.
_UNSTORABLE: Final = re.compile("[\x00\ud800-\udfff]")
_REPLACEMENT: Final = "\ufffd"


def insert_run(connection: Connection, entry: StoreEntry) -> int | None:
    """Add a run to the end of the history.

    Args:
        connection: Connection in a transaction that writes.
        entry: Run to add.

    Returns:
        Its number, None if the store already has it.
    """
    digest, runs = entry.digest, schema.runs.c
    # With its times: the name of a run directory may be used again.
    same = select(runs.seq).where(
        runs.name == digest.run, runs.started == digest.started, runs.finished == digest.finished
    )
    if connection.execute(same).first() is not None:
        return None
    seq = _find_next(connection, runs.seq)
    places = make_stable_cell_ids(digest.cells)
    jobs = _add_changes(connection, seq, _number_states(connection, entry, places))
    # Sorted, as equal sets of jobs must have one key.
    key, packed = schema.pack_jobs(np.sort(np.array(jobs, np.int64)))
    row = {
        "seq": seq, "name": digest.run, "started": digest.started, "finished": digest.finished,
        "exit": digest.exit, "matrix": digest.matrix, "part": digest.part,
        "plan": _intern(connection, schema.plans, {key: {"jobs": packed}})[key],
        "counts": digest.counts, "unexpected": digest.unexpected_count,
        "cells": {
            places[cell]: [cell, release]
            for cell, release in zip(digest.cells, digest.releases, strict=True)
        },
        "host": entry.host, "versions": entry.versions,
    }  # fmt: skip
    connection.execute(insert(schema.runs), [row])
    return seq


def make_storable(text: str) -> str:
    """Replace characters that databases refuse: NUL, and surrogates.

    Args:
        text: Any text.
    """
    return _UNSTORABLE.sub(_REPLACEMENT, text)


def _find_next(connection: Connection, column: Column[int]) -> int:
    # No sequence is needed: only one connection writes at a time.
    return (connection.execute(select(func.max(column))).scalar_one() or 0) + 1


def _intern(
    connection: Connection, table: Table, rows: Mapping[str, dict[str, Any]]
) -> dict[str, int]:
    """Return the number of each row by the hash of its content; add new rows."""
    rows_in_table = connection.execute(select(table.c.key, table.c.id))
    known = {row.key: row.id for row in rows_in_table}
    new = [key for key in rows if key not in known]
    numbers = dict(zip(new, count(_find_next(connection, table.c.id)), strict=False))
    if new:
        added = [{"id": numbers[key], "key": key, **rows[key]} for key in new]
        connection.execute(insert(table), added)
    return known | numbers


def _number_states(
    connection: Connection, entry: StoreEntry, places: Mapping[str, str]
) -> JobStates:
    """Return the number of each job's state, and whether it was repeated, by case and place."""
    rows: dict[str, dict[str, Any]] = {}
    keys: dict[JobState, str] = {}
    for state in entry.digest.states:
        # Hashed as stored: states that become equal must have one key.
        row = {name: make_storable(str(getattr(state, name))) for name in state.__struct_fields__}
        keys[state] = hashlib.sha256(msgspec.json.encode([*row.values()])).hexdigest()
        rows[keys[state]] = row
    numbers = _intern(connection, schema.states, rows)
    return {
        (case, places[cell]): (numbers[keys[state]], (case, cell) in entry.repeated)
        for (case, cell), state in entry.digest.jobs.items()
    }


def _add_changes(connection: Connection, seq: int, states: JobStates) -> list[int]:
    """Add the states that differ from the known ones, and return the numbers of the jobs."""
    jobs = schema.jobs.c
    query = select(jobs.case, jobs.place, jobs.id, jobs.state)
    known = {(case, place): (job, state) for case, place, job, state in connection.execute(query)}
    free = count(_find_next(connection, jobs.id))
    added: list[dict[str, Any]] = []
    updated: list[dict[str, Any]] = []
    changes: list[dict[str, Any]] = []
    job_numbers: list[int] = []
    for (case, place), (state, repeated) in states.items():
        job, before = known.get((case, place), (None, None))
        if job is None:
            job = next(free)
            added.append({"id": job, "case": case, "place": place, "state": state})
        elif before != state:
            updated.append({"job": job, "now": state})
        # A job that did not change has no row: most runs are almost equal to the run before.
        if before != state:
            changes.append({"job": job, "run": seq, "state": state, "repeated": repeated})
        job_numbers.append(job)
    for statement, rows in (
        (insert(schema.jobs), added),
        (update(schema.jobs).where(jobs.id == bindparam("job")).values(state=bindparam("now")),
         updated),
        (insert(schema.changes), changes),
    ):  # fmt: skip
        if rows:
            connection.execute(statement, rows)
    return job_numbers
