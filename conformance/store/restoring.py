"""Digests of runs as a store has them: what their directories said, which may be gone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
from sqlalchemy import select

from conformance.engine.digests import Digest
from conformance.store import schema
from conformance.store.querying import plans_of, runs_of, sequence_of, states_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray
    from sqlalchemy import Connection

    from conformance.engine.digests import State
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
        self.cases = sorted({case for _, case, _ in rows})
        self.places = sorted({place for _, _, place in rows})
        self.case = np.zeros(max((job for job, _, _ in rows), default=0) + 1, np.int64)
        self.cell = np.zeros_like(self.case)
        of_case = {name: at for at, name in enumerate(self.cases)}
        of_place = {name: at for at, name in enumerate(self.places)}
        for job, case, place in rows:
            self.case[job], self.cell[job] = of_case[case], of_place[place]


def digests_of(connection: Connection) -> Iterator[Digest]:
    """Yield the digest of every run, in the order they were added.

    Args:
        connection: In a transaction.
    """
    jobs, states, plans = _Jobs(connection), states_of(connection), plans_of(connection)
    plan_of = dict(sequence_of(connection))
    shown = np.zeros(len(jobs.case), np.int64)
    changes = _changes(connection)
    at = 0
    for run in runs_of(connection):
        end = int(np.searchsorted(changes[0], run.number, "right"))
        # The last of several counts: what is assigned last stays.
        shown[changes[1][at:end]] = changes[2][at:end]
        at = end
        yield _digest(run, jobs, plans[plan_of[run.number]], shown, states)


def _changes(connection: Connection) -> Numbers:
    """Return run, job and state of every change, by run."""
    changes = schema.changes.c
    rows = connection.execute(select(changes.run, changes.job, changes.state)).all()
    table = np.array([tuple(row) for row in rows], np.int64).reshape(-1, 3)
    return table[np.argsort(table[:, 0], kind="stable")].T


def _digest(
    run: StoredRun, jobs: _Jobs, ran: Numbers, shown: Numbers, states: Mapping[int, State]
) -> Digest:
    of_case, row = np.unique(jobs.case[ran], return_inverse=True)
    of_place, column = np.unique(jobs.cell[ran], return_inverse=True)
    numbers, state = np.unique(shown[ran], return_inverse=True)
    table = np.zeros((len(of_case), len(of_place)), _INDEX)
    table[row, column] = state + 1
    cells = [run.cells[jobs.places[place]] for place in of_place.tolist()]
    order = sorted(range(len(cells)), key=lambda at: cells[at][0])
    return Digest(
        run=run.name,
        started=run.started,
        finished=run.finished,
        exit=run.exit,
        matrix=run.matrix,
        part=run.part,
        cases=tuple(jobs.cases[case] for case in of_case.tolist()),
        cells=tuple(cells[at][0] for at in order),
        releases=tuple(cells[at][1] for at in order),
        states=tuple(states[number] for number in numbers.tolist()),
        grid=table[:, order].tobytes(),
    )
