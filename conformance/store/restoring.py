"""Digests of runs as a store has them: what their directories said, which may be gone."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Final

import numpy as np
from sqlalchemy import select

from conformance.engine.digests import Digest
from conformance.store import schema
from conformance.store.database import CorruptStoreError
from conformance.store.querying import plans_of, runs_of, sequence_of, states_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray
    from sqlalchemy import Connection

    from conformance.engine.digests import JobState
    from conformance.store.querying import StoredRun

    Numbers = NDArray[np.int64]

_INDEX: Final = np.dtype("<u4")


class _Jobs:
    """The jobs of a store, by number.

    Attributes:
        case: Place of each job's case among the cases.
        cell: Place of each job's place among the places.
        cases: The cases.
        places: The places.
    """

    def __init__(self, connection: Connection) -> None:
        jobs = schema.jobs.c
        rows = connection.execute(select(jobs.id, jobs.case, jobs.place)).all()
        # SQLite keeps a value of any type in a column, also in one for text.
        if not all(isinstance(text, str) for _, case, place in rows for text in (case, place)):
            raise CorruptStoreError("the history names jobs by other things than text; restore it")
        self.cases = sorted({case for _, case, _ in rows})
        self.places = sorted({place for _, _, place in rows})
        self.case = np.zeros(max((job for job, _, _ in rows), default=0) + 1, np.int64)
        self.cell = np.zeros_like(self.case)
        of_case = {name: at for at, name in enumerate(self.cases)}
        of_place = {name: at for at, name in enumerate(self.places)}
        for job, case, place in rows:
            self.case[job], self.cell[job] = of_case[case], of_place[place]


@dataclass(frozen=True, slots=True)
class _Layout:
    """Where the jobs of a plan stand in a table of cases by places.

    Attributes:
        ran: The jobs.
        cases: The cases.
        places: The places.
        row: Row of each job.
        column: Column of each job.
    """

    ran: Numbers
    cases: tuple[str, ...]
    places: tuple[str, ...]
    row: Numbers
    column: Numbers


def digests_of(connection: Connection) -> Iterator[Digest]:
    """Yield the digest of every run, in the order they were added.

    Args:
        connection: In a transaction.
    """
    jobs, states = _Jobs(connection), states_of(connection)
    # Most runs have the jobs of the one before.
    layouts = {plan: _layout(jobs, ran) for plan, ran in plans_of(connection).items()}
    plan_of = dict(sequence_of(connection))
    shown = np.zeros(len(jobs.case), np.int64)
    numbers, of_jobs, of_states = _changes(connection)
    at = 0
    for run in runs_of(connection):
        end = int(np.searchsorted(numbers, run.number, "right"))
        # Of several of one job the last counts: what is assigned last stays.
        shown[of_jobs[at:end]] = of_states[at:end]
        at = end
        yield _digest(run, layouts[plan_of[run.number]], shown, states)


def _changes(connection: Connection) -> Numbers:
    """Return run, job and state of every change, by run."""
    changes = schema.changes.c
    rows = connection.execute(select(changes.run, changes.job, changes.state)).all()
    table = np.fromiter(chain.from_iterable(rows), np.int64, len(rows) * 3).reshape(-1, 3)
    return table[np.argsort(table[:, 0], kind="stable")].T


def _layout(jobs: _Jobs, ran: Numbers) -> _Layout:
    cases, row = np.unique(jobs.case[ran], return_inverse=True)
    places, column = np.unique(jobs.cell[ran], return_inverse=True)
    return _Layout(
        ran=ran,
        cases=tuple(jobs.cases[case] for case in cases.tolist()),
        places=tuple(jobs.places[place] for place in places.tolist()),
        row=row,
        column=column,
    )


def _digest(
    run: StoredRun, layout: _Layout, shown: Numbers, states: Mapping[int, JobState]
) -> Digest:
    numbers, state = np.unique(shown[layout.ran], return_inverse=True)
    table = np.zeros((len(layout.cases), len(layout.places)), _INDEX)
    table[layout.row, layout.column] = state + 1
    cells = [run.cells[place] for place in layout.places]
    order = sorted(range(len(cells)), key=lambda at: cells[at][0])
    return Digest(
        run=run.name,
        started=run.started,
        finished=run.finished,
        exit=run.exit,
        matrix=run.matrix,
        part=run.part,
        cases=layout.cases,
        cells=tuple(cells[at][0] for at in order),
        releases=tuple(cells[at][1] for at in order),
        states=tuple(states[number] for number in numbers.tolist()),
        grid=table[:, order].tobytes(),
    )
