"""Adding a run to a store: only what differs from what was known makes rows."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

import msgspec
import numpy as np
from sqlalchemy import bindparam, func, insert, select, update

from conformance.cells.cell_id import stable_cell_ids
from conformance.model.outcome import Verdict
from conformance.store import plans, schema

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy import Column, Connection

    from conformance.engine.digests import JobState
    from conformance.store.entries import Entry

    Seen = dict[tuple[str, str], tuple[int, bool]]

_UNSTORABLE: Final = re.compile("[\x00\ud800-\udfff]")
_REPLACEMENT: Final = "\ufffd"


def add(connection: Connection, entry: Entry) -> int | None:
    """Add a run after those that are there.

    Args:
        connection: In a transaction that writes.
        entry: The run.

    Returns:
        Its number, None if it is there already.
    """
    digest, runs = entry.digest, schema.runs.c
    once = (runs.name == digest.run, runs.started == digest.started)
    there = select(runs.seq).where(*once, runs.finished == digest.finished)
    if connection.execute(there).first() is not None:
        return None
    seq = _after(connection, runs.seq)
    places = stable_cell_ids(digest.cells)
    numbers = _state_numbers(connection, digest.states)
    ran = _add_changes(connection, seq, dict(_seen(entry, places, numbers)))
    counts = Counter(state for _, _, state in _jobs(entry))
    row = {
        "seq": seq, "name": digest.run, "started": digest.started, "finished": digest.finished,
        "exit": digest.exit, "matrix": digest.matrix, "part": digest.part,
        "plan": _plan(connection, ran), "counts": _by_verdict(counts),
        "unexpected": sum(n for state, n in counts.items() if state.unexpected),
        "cells": {
            places[cell]: [cell, release]
            for cell, release in zip(digest.cells, digest.releases, strict=True)
        },
        "host": entry.host, "versions": entry.versions,
    }  # fmt: skip
    connection.execute(insert(schema.runs), [row])
    return seq


def storable(text: str) -> str:
    """Return a text with what no database takes replaced: NUL, and halves of characters.

    Args:
        text: Any text.
    """
    return _UNSTORABLE.sub(_REPLACEMENT, text)


def _after(connection: Connection, column: Column[int]) -> int:
    return (connection.execute(select(func.max(column))).scalar_one() or 0) + 1


def _jobs(entry: Entry) -> Iterator[tuple[str, str, JobState]]:
    """Yield case, cell and state of every job."""
    digest = entry.digest
    table = digest.table
    for row, column in np.argwhere(table).tolist():
        yield digest.cases[row], digest.cells[column], digest.states[table[row, column] - 1]


def _by_verdict(counts: Counter[JobState]) -> dict[str, int]:
    found: Counter[str] = Counter()
    for state, number in counts.items():
        found[str(state.verdict)] += number
    return {verdict: found[verdict] for verdict in Verdict if found[verdict]}


def _seen(
    entry: Entry, places: dict[str, str], numbers: dict[JobState, int]
) -> Iterator[tuple[tuple[str, str], tuple[int, bool]]]:
    """Yield case and place of every job, with its state and whether that was repeated."""
    for case, cell, state in _jobs(entry):
        yield (case, places[cell]), (numbers[state], (case, cell) in entry.repeated)


def _state_numbers(connection: Connection, states: tuple[JobState, ...]) -> dict[JobState, int]:
    """Return the number of every state; the new ones are added."""
    keys = {state: _key(state) for state in states}
    kept, known = schema.states.c, dict[str, int]()
    for some in _portions(sorted(set(keys.values()))):
        query = select(kept.key, kept.id).where(kept.key.in_(some))
        known.update((key, number) for key, number in connection.execute(query))
    free = _after(connection, kept.id)
    rows: dict[str, dict[str, Any]] = {}
    for state, key in keys.items():
        if key not in known:
            known[key] = free + len(rows)
            rows[key] = {
                "id": known[key], "key": key, "verdict": str(state.verdict),
                "outcome": str(state.outcome), "conformance": str(state.conformance),
                "reason": storable(state.reason), "cause": storable(state.cause),
            }  # fmt: skip
    if rows:
        connection.execute(insert(schema.states), list(rows.values()))
    return {state: known[key] for state, key in keys.items()}


def _key(state: JobState) -> str:
    said = (*state.__struct_fields__,)
    values = [storable(str(getattr(state, name))) for name in said]
    return hashlib.sha256(msgspec.json.encode(values)).hexdigest()


def _portions(keys: list[str], size: int = 500) -> Iterator[list[str]]:
    """Yield keys a few at a time: statements have so many parameters at most."""
    for start in range(0, len(keys), size):
        yield keys[start : start + size]


def _add_changes(connection: Connection, seq: int, seen: Seen) -> list[int]:
    """Add what differs from what was known, and return the numbers of the jobs."""
    jobs = schema.jobs.c
    query = select(jobs.case, jobs.place, jobs.id, jobs.state)
    known = {(case, place): (job, state) for case, place, job, state in connection.execute(query)}
    free = _after(connection, jobs.id)
    new: list[dict[str, Any]] = []
    other: list[dict[str, Any]] = []
    changes: list[dict[str, Any]] = []
    ran: list[int] = []
    for (case, place), (state, repeated) in seen.items():
        before = known.get((case, place))
        if before is None:
            job = free + len(new)
            new.append({"id": job, "case": case, "place": place, "state": state})
        else:
            job = before[0]
            if before[1] != state:
                other.append({"job": job, "now": state})
        if before is None or before[1] != state:
            changes.append({"job": job, "run": seq, "state": state, "repeated": repeated})
        ran.append(job)
    if new:
        connection.execute(insert(schema.jobs), new)
    if other:
        changed = update(schema.jobs).where(jobs.id == bindparam("job"))
        connection.execute(changed.values(state=bindparam("now")), other)
    if changes:
        connection.execute(insert(schema.changes), changes)
    return ran


def _plan(connection: Connection, jobs: list[int]) -> int:
    """Return the number of a plan; a new one is added."""
    key, content = plans.packed(np.sort(np.array(jobs, np.int64)))
    kept = schema.plans.c
    found = connection.execute(select(kept.id).where(kept.key == key)).scalar_one_or_none()
    if found is not None:
        return int(found)
    number = _after(connection, kept.id)
    connection.execute(insert(schema.plans), [{"id": number, "key": key, "jobs": content}])
    return number
