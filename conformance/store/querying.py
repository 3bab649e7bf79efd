"""What a store says: of its runs, of a case, of regressions."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
from sqlalchemy import Integer, select, type_coerce

from conformance.engine.digests import JobState
from conformance.model.outcome import Conformance, Outcome, Verdict
from conformance.store import plans, schema
from conformance.store.replay import Changes, Replay
from conformance.store.standing import Link

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray
    from sqlalchemy import Connection, Row, Select

    Numbers = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRun:
    """A run in a store.

    Attributes:
        number: Its place in the order of adding; those of runs that are gone stay free.
        name: Its id.
        started: When it began, as its `run.json` says.
        finished: When it ended.
        exit: Exit status.
        matrix: Name or file of the matrix.
        part: What of the matrix was asked for, where that was not all of it.
        counts: How many jobs have each verdict.
        unexpected: How many jobs are unexpected.
        cells: Cell and its release of jax, by place.
        host: Facts of the host.
        versions: Of this project, its kit and the Python it ran on.
    """

    number: int
    name: str
    started: str
    finished: str
    exit: int | None
    matrix: str
    part: str
    counts: dict[str, int]
    unexpected: int
    cells: dict[str, tuple[str, str]]
    host: dict[str, Any]
    versions: dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """Runs one after another that showed the same of a job.

    Attributes:
        state: What; None where the job did not run.
        first: Number of the first of them.
        last: Number of the last of them.
        runs: How many they are.
    """

    state: JobState | None
    first: int
    last: int
    runs: int


def runs_of(connection: Connection) -> list[StoredRun]:
    """Return the runs, in the order they were added."""
    table = schema.runs
    columns = [column for column in table.c if column.name != "plan"]
    return [_run(row) for row in connection.execute(select(*columns).order_by(table.c.seq))]


def _run(row: Row[Any]) -> StoredRun:
    said = dict(row._mapping)  # noqa: SLF001 - public, named so that no column hides it
    cells = {place: (cell, release) for place, (cell, release) in said["cells"].items()}
    return StoredRun(number=said.pop("seq"), **{**said, "cells": cells})


def case_of(connection: Connection, case: str) -> dict[str, list[Span]]:
    """Return what every run showed of a case, by place.

    Args:
        connection: In a transaction.
        case: Its id.
    """
    jobs, changes = schema.jobs.c, schema.changes.c
    query = select(jobs.id, jobs.place).where(jobs.case == case).order_by(jobs.place)
    places = {job: place for job, place in connection.execute(query)}  # noqa: C416 - of rows
    if not places:
        return {}
    known: dict[int, list[tuple[int, int]]] = defaultdict(list)
    rows = (
        select(changes.job, changes.run, changes.state)
        .where(changes.job.in_(places))
        .order_by(changes.job, changes.run)
    )
    for job, run, state in connection.execute(rows):
        known[job].append((run, state))
    shown = select(changes.state).where(changes.job.in_(places))
    states = states_of(connection, shown)
    ran = _ran(connection, np.array(sorted(places), np.int64))
    return {
        place: list(_spans(known[job], states, [(run, job in jobs) for run, jobs in ran]))
        for job, place in places.items()
    }


def _ran(connection: Connection, jobs: Numbers) -> list[tuple[int, frozenset[int]]]:
    """Return which of some jobs ran in each run, in order."""
    within = {
        number: frozenset(np.intersect1d(jobs, found).tolist())
        for number, found in plans_of(connection).items()
    }
    return [(run, within[plan]) for run, plan in sequence_of(connection)]


def _spans(
    moves: Sequence[tuple[int, int]],
    states: Mapping[int, JobState],
    ran: Sequence[tuple[int, bool]],
) -> Iterator[Span]:
    """Yield the spans of a job."""
    at = [run for run, _ in moves]
    found: list[tuple[int | None, list[int]]] = []
    for run, there in ran:
        state = moves[bisect_right(at, run) - 1][1] if there else None
        if not found or found[-1][0] != state:
            found.append((state, []))
        found[-1][1].append(run)
    for state, runs in found:
        said = None if state is None else states[state]
        yield Span(state=said, first=runs[0], last=runs[-1], runs=len(runs))


def states_at(connection: Connection, run: int) -> dict[tuple[str, str], JobState]:
    """Return the state of every job of a run, by case and place.

    Args:
        connection: In a transaction.
        run: Number of the run.
    """
    jobs, changes, runs = schema.jobs.c, schema.changes.c, schema.runs.c
    kept = select(schema.plans.c.jobs).join(schema.runs).where(runs.seq == run)
    content = connection.execute(kept).scalar_one_or_none()
    if content is None:
        return {}
    rows = select(changes.job, changes.state).where(changes.run <= run).order_by(changes.run)
    last = {job: state for job, state in connection.execute(rows)}  # noqa: C416 - of rows
    names = {
        job: (case, place)
        for job, case, place in connection.execute(select(jobs.id, jobs.case, jobs.place))
    }
    ran = plans.unpacked(content).tolist()
    states = states_of(connection)
    return {names[job]: states[last[job]] for job in ran}


def replay_of(connection: Connection) -> Replay:
    """Return what became of all that was unexpected."""
    jobs, changes = schema.jobs.c, schema.changes.c
    names = {
        job: (case, place)
        for job, case, place in connection.execute(select(jobs.id, jobs.case, jobs.place))
    }
    # As numbers, for there are many.
    columns = (changes.job, changes.run, changes.state, type_coerce(changes.repeated, Integer))
    rows = connection.execute(select(*columns)).all()
    table = np.fromiter(chain.from_iterable(rows), np.int64, len(rows) * len(columns))
    job, run, state, repeated = table.reshape(-1, len(columns)).T
    order = np.lexsort((run, job))
    replay = Replay(names, states_of(connection), Changes(job, run, state, repeated > 0)[order])
    replay.run(sequence_of(connection), plans_of(connection))
    return replay


def links_of(connection: Connection) -> dict[str, Link]:
    """Return the linked issues, by the id of the regression."""
    links = schema.links.c
    rows = connection.execute(select(links.regression, links.issue, links.run))
    return {regression: Link(issue, run) for regression, issue, run in rows}


def states_of(
    connection: Connection, some: Select[tuple[int]] | None = None
) -> dict[int, JobState]:
    """Return states by number: all, or some."""
    kept = schema.states.c
    query = select(kept.id, kept.verdict, kept.outcome, kept.conformance, kept.reason, kept.cause)
    if some is not None:
        query = query.where(kept.id.in_(some))
    return {
        number: JobState(
            Verdict(verdict), Outcome(outcome), Conformance(conformance), reason, cause
        )
        for number, verdict, outcome, conformance, reason, cause in connection.execute(query)
    }


def sequence_of(connection: Connection) -> list[tuple[int, int]]:
    """Return number and plan of every run, in order."""
    runs = schema.runs.c
    rows = connection.execute(select(runs.seq, runs.plan).order_by(runs.seq))
    return [(run, plan) for run, plan in rows]


def plans_of(connection: Connection) -> dict[int, Numbers]:
    """Return the jobs of every plan, by its number."""
    kept = schema.plans.c
    rows = connection.execute(select(kept.id, kept.jobs))
    return {number: plans.unpacked(content) for number, content in rows}
