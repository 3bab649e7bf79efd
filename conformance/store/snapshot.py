"""The content of a store, read in one transaction: runs, and the state of each job in each."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, groupby
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from sqlalchemy import Integer, select, type_coerce

from conformance.engine.runs.digests import Digest, JobState
from conformance.engine.runs.regression_tracker import IssueLink, RegressionTracker, StateTable
from conformance.model.outcome import Conformance, Outcome, Verdict
from conformance.store import schema
from conformance.store.database import CorruptStoreError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray
    from sqlalchemy import ColumnElement, Connection

    Numbers = NDArray[np.int64]

# The type of `Digest.grid`.
_INDEX: Final = np.dtype("<u4")


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRun:
    """A run in a store.

    Attributes:
        number: Its place in the order of adding; numbers are never reused.
        name: Id of the run.
        started: Time when it began, as in its `run.json`.
        finished: Time when it ended.
        exit: Exit status.
        matrix: Name or file of the matrix.
        part: The selected part of the matrix, empty for all of it.
        counts: Number of jobs by verdict.
        unexpected: Number of unexpected jobs.
        cells: Cell and its release of jax, by place.
        host: Facts of the host.
        versions: Versions of this project, its kit and the Python it ran on.
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
class CaseSpan:
    """Consecutive runs in which a job had the same state.

    Attributes:
        state: The state; None if the job did not run.
        first: Number of the first run.
        last: Number of the last run.
        runs: Number of runs.
    """

    state: JobState | None
    first: int
    last: int
    runs: int


class _Step(NamedTuple):
    """A run in a replay.

    Attributes:
        run: Number of the run.
        plan: Number of its plan; None if the run was pruned.
        changed: Jobs whose state changed, shape (changes,).
        repeated: Whether each of these was run several times, shape (changes,).
        current: Number of the state of every job at this run, shape (jobs + 1,); the next step
            overwrites it.
    """

    run: int
    plan: int | None
    changed: Numbers
    repeated: NDArray[np.bool_]
    current: Numbers


class _Jobs:
    """The jobs of a store, by number.

    Attributes:
        cases: Ids of the cases.
        places: Stable ids of the cells.
        case: Index of the case of each job, shape (jobs + 1,).
        place: Index of the place of each job, shape (jobs + 1,).
    """

    def __init__(self, connection: Connection) -> None:
        jobs = schema.jobs.c
        rows = connection.execute(select(jobs.id, jobs.case, jobs.place)).all()
        # SQLite accepts a value of any type in a text column.
        if not all(isinstance(text, str) for _, *names in rows for text in names):
            raise CorruptStoreError(
                "the names of jobs are not text, expected text; restore the history from its backup"
            )
        numbers, cases, places = zip(*rows, strict=True) if rows else ((), (), ())
        size = max(numbers, default=0) + 1
        self.cases, self.case = _number_names(numbers, cases, size)
        self.places, self.place = _number_names(numbers, places, size)


def _number_names(
    jobs: tuple[int, ...], names: tuple[str, ...], size: int
) -> tuple[list[str], Numbers]:
    """Return the distinct names in order, and for each job the number of its name."""
    distinct = sorted(set(names))
    number = {name: at for at, name in enumerate(distinct)}
    found = np.zeros(size, np.int64)
    found[list(jobs)] = [number[name] for name in names]
    return distinct, found


class StoreSnapshot:
    """The content of a store.

    Args:
        connection: Connection in a transaction.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    @cached_property
    def runs(self) -> list[StoredRun]:
        """The runs, in the order they were added."""
        table = schema.runs
        query = select(*(column for column in table.c if column.name != "plan"))
        runs = []
        for row in self._connection.execute(query.order_by(table.c.seq)).mappings():
            columns = dict(row)
            # JSON has no tuples.
            columns["cells"] = {place: (*cell,) for place, cell in row["cells"].items()}
            runs.append(StoredRun(number=columns.pop("seq"), **columns))
        return runs

    @cached_property
    def states(self) -> dict[int, JobState]:
        """Every state, by number."""
        columns = schema.states.c
        query = select(
            columns.id,
            columns.verdict,
            columns.outcome,
            columns.conformance,
            columns.reason,
            columns.cause,
        )
        return {
            number: JobState(Verdict(verdict), Outcome(outcome), Conformance(judged), *texts)
            for number, verdict, outcome, judged, *texts in self._connection.execute(query)
        }

    @cached_property
    def links(self) -> dict[str, IssueLink]:
        """The linked issues, by the id of the regression."""
        links = schema.links.c
        rows = self._connection.execute(select(links.regression, links.issue, links.run))
        return {regression: IssueLink(issue, run) for regression, issue, run in rows}

    @cached_property
    def _jobs(self) -> _Jobs:
        return _Jobs(self._connection)

    @cached_property
    def _plans(self) -> dict[int, Numbers]:
        """The jobs of each plan."""
        rows = self._connection.execute(select(schema.plans.c.id, schema.plans.c.jobs))
        return {number: schema.unpack_jobs(content) for number, content in rows}

    @cached_property
    def _plan_of(self) -> dict[int, int]:
        """The plan of each run, in the order they were added."""
        runs = schema.runs.c
        rows = self._connection.execute(select(runs.seq, runs.plan).order_by(runs.seq))
        return {row.seq: row.plan for row in rows}

    def _replay(self, *where: ColumnElement[bool]) -> Iterator[_Step]:
        """Yield every run in order, beginning with pruned runs that left changes.

        Args:
            where: Conditions on the replayed changes, none by default.
        """
        changes = schema.changes.c
        # A number in the array below; SQLAlchemy would convert each value to a bool first.
        repeated = type_coerce(changes.repeated, Integer)
        query = select(changes.run, changes.job, changes.state, repeated).where(*where)
        rows = self._connection.execute(query).all()
        # As an array: there are too many changes for Python objects.
        table = np.fromiter(chain.from_iterable(rows), np.int64, len(rows) * 4).reshape(-1, 4)
        table = table[np.lexsort((table[:, 1], table[:, 0]))]
        runs, starts = np.unique(table[:, 0], return_index=True)
        # Not strict: without any change np.split still returns an empty part.
        changed = dict(zip(runs.tolist(), np.split(table[:, 1:], starts[1:]), strict=False))
        current = np.zeros(len(self._jobs.case), np.int64)
        for run in sorted(changed.keys() | self._plan_of.keys()):
            job, state, again = changed.get(run, table[:0, 1:]).T
            current[job] = state
            yield _Step(run, self._plan_of.get(run), job, again > 0, current)

    def make_spans(self, case: str) -> dict[str, list[CaseSpan]]:
        """Return the state of a case in every run, by place.

        Args:
            case: Id of the case.
        """
        jobs = schema.jobs.c
        rows = self._connection.execute(select(jobs.id, jobs.place).where(jobs.case == case))
        places = {row.id: row.place for row in rows}
        own = np.array(sorted(places), np.int64)
        within = {plan: {*np.intersect1d(own, ran).tolist()} for plan, ran in self._plans.items()}
        found: dict[str, list[tuple[int, JobState | None]]] = defaultdict(list)
        for step in self._replay(schema.changes.c.job.in_(places)):
            if step.plan is not None:
                for job, place in places.items():
                    ran = job in within[step.plan]
                    found[place].append((step.run, self.states[step.current[job]] if ran else None))
        return {place: list(_make_spans(history)) for place, history in sorted(found.items())}

    def find_states(self, run: int) -> dict[tuple[str, str], JobState]:
        """Return the state of every job of a run, by case and place.

        Args:
            run: Number of the run.
        """
        # From the first run on: a job that did not change in this run has no row for it.
        for step in self._replay(schema.changes.c.run <= run):
            if step.run == run and step.plan is not None:
                jobs, ran = self._jobs, self._plans[step.plan]
                columns = (jobs.case[ran], jobs.place[ran], step.current[ran])
                return {
                    (jobs.cases[case], jobs.places[place]): self.states[state]
                    for case, place, state in np.stack(columns, axis=1).tolist()
                }
        return {}

    def make_digests(self) -> Iterator[Digest]:
        """Yield the digest of every run, in the order they were added."""
        runs = {run.number: run for run in self.runs}
        # Most runs share their plan with the run before.
        layouts = {plan: _Layout(self._jobs, ran) for plan, ran in self._plans.items()}
        for step in self._replay():
            if step.plan is not None:
                states = step.current[self._plans[step.plan]]
                yield layouts[step.plan].make_digest(runs[step.run], states, self.states)

    def track_regressions(self) -> RegressionTracker:
        """Return a tracker of regressions over every run."""
        jobs, table = self._jobs, StateTable(self.states)
        tracker = RegressionTracker(jobs.cases, jobs.case, jobs.places, jobs.place)
        for step in self._replay():
            if step.run == next(iter(self._plan_of), None):
                tracker.restart()  # changes of pruned runs are only the initial states
            ran = step.changed[:0] if step.plan is None else self._plans[step.plan]
            states = step.current[step.changed]
            repeated = step.changed[step.repeated]
            tracker.add(step.run, step.changed, states, table, ran=ran, repeated=repeated)
        return tracker


def _make_spans(history: list[tuple[int, JobState | None]]) -> Iterator[CaseSpan]:
    for state, members in groupby(history, key=lambda pair: pair[1]):
        runs = [run for run, _ in members]
        yield CaseSpan(state=state, first=runs[0], last=runs[-1], runs=len(runs))


class _Layout:
    """The places of the jobs of a plan in a table of cases by places.

    Args:
        jobs: The jobs of the store.
        ran: Numbers of the jobs of the plan, shape (jobs,).
    """

    def __init__(self, jobs: _Jobs, ran: Numbers) -> None:
        cases, self._row = np.unique(jobs.case[ran], return_inverse=True)
        places, self._column = np.unique(jobs.place[ran], return_inverse=True)
        self._cases = tuple(jobs.cases[case] for case in cases.tolist())
        self._places = tuple(jobs.places[place] for place in places.tolist())

    def make_digest(self, run: StoredRun, current: Numbers, states: dict[int, JobState]) -> Digest:
        """Return the digest of a run of this plan.

        Args:
            run: Run of the plan.
            current: Number of the state of each job, shape (jobs,).
            states: Every state.
        """
        numbers, state = np.unique(current, return_inverse=True)
        table = np.zeros((len(self._cases), len(self._places)), _INDEX)
        # 0 is a job that did not run.
        table[self._row, self._column] = state + 1
        cells = [run.cells[place] for place in self._places]
        # Columns are sorted by cell, as in a digest of a run directory: places sort differently.
        order = sorted(range(len(cells)), key=lambda at: cells[at][0])
        return Digest(
            run=run.name,
            started=run.started,
            finished=run.finished,
            exit=run.exit,
            matrix=run.matrix,
            part=run.part,
            cases=self._cases,
            cells=tuple(cells[at][0] for at in order),
            releases=tuple(cells[at][1] for at in order),
            states=tuple(states[number] for number in numbers.tolist()),
            grid=table[:, order].tobytes(),
        )
