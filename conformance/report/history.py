"""A history over many runs: verdicts by date, and regressions with their first and last runs."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, Final, TypeVar

import numpy as np
from msgspec import structs

from conformance.cells.nightly import make_stable_cell_ids
from conformance.engine.runs.regression_tracker import (
    RegressionStatus,
    RegressionTracker,
    StateTable,
)
from conformance.model.run import RunCell
from conformance.report.text import parse_time
from conformance.report.tracks import group_tracks
from conformance.report.verdicts import WORST_FIRST

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from conformance.engine.runs.digests import Digest
    from conformance.engine.runs.regression_tracker import Regression, RegressionEvent
    from conformance.model.outcome import Verdict

    Ranks = NDArray[np.uint8]

T = TypeVar("T")
NOTHING: Final = len(WORST_FIRST)
"""Rank of a job that did not run; other ranks are positions in `WORST_FIRST`, the worst is 0."""
_RANKS: Final = {verdict: rank for rank, verdict in enumerate(WORST_FIRST)}


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPoint:
    """A run in a history.

    Attributes:
        id: Its id.
        started: Time at which it began, as in its `run.json`.
        finished: Time at which it ended, empty for a run that did not end.
        time: Time at which it began in UTC, None if `started` is no time.
        exit: Exit status; None of a run that did not end.
        matrix: Name or file of the matrix.
        counts: Number of jobs by verdict, in the order of the verdicts.
        unexpected: Number of unexpected jobs.
    """

    id: str
    started: str
    finished: str
    time: datetime | None
    exit: int | None
    matrix: str
    counts: dict[Verdict, int]
    unexpected: int

    @property
    def jobs(self) -> int:
        """Number of jobs."""
        return sum(self.counts.values())

    @property
    def date(self) -> str:
        """The day it began, in UTC."""
        return "an unknown date" if self.time is None else self.time.date().isoformat()


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """The results of many runs, the oldest first.

    Attributes:
        runs: The runs.
        cases: Ids of all cases, in order.
        cells: All cells, by track and release: their ids; for nightlies see `make_stable_cell_ids`.
        ranks: Rank of each verdict, of shape (runs, cases, cells); `NOTHING` without a job.
        regressions: Unexpected results by root cause, the open ones first.
        events: Openings, fixes and reopenings of regressions, the oldest first.
        releases: Release of jax in each cell, the newest where a cell had several.
    """

    runs: tuple[RunPoint, ...]
    cases: tuple[str, ...]
    cells: tuple[str, ...]
    ranks: Ranks
    regressions: tuple[Regression, ...]
    events: tuple[RegressionEvent, ...]
    releases: Mapping[str, str]

    def of_case(self, case: str) -> Ranks:
        """Return the ranks of a case in each run, a row for each run and a column for each cell."""
        return self.ranks[:, self.cases.index(case), :]

    def verdicts(self, case: str, cell: str) -> list[tuple[Verdict | None, int]]:
        """Return the verdicts of a job by run, run-length encoded, None where it did not run."""
        column = self.of_case(case)[:, self.cells.index(cell)]
        return [
            (find_verdict(rank), length) for rank, length in encode_run_lengths(column.tolist())
        ]


def make_history(digests: Iterable[Digest]) -> History:
    """Return the history of runs.

    Args:
        digests: Digests of the runs, in any order; a run that is given twice counts once.
    """
    original = order_runs(digests)
    ordered = [_rename_cells(digest) for digest in original]
    names = sorted({name for digest in ordered for name in digest.cases})
    cases = {name: place for place, name in enumerate(names)}
    cells = _number_cells(original)
    # A year of nights has millions of jobs: an array holds each in a byte.
    size = len(cases) * len(cells)
    ranks = np.full((len(ordered), size), NOTHING, np.uint8)
    case_of, cell_of = np.divmod(np.arange(size), max(1, len(cells)))
    tracker = RegressionTracker(names, case_of, list(cells), cell_of)
    for run, digest in enumerate(ordered):
        rows = np.array([cases[name] for name in digest.cases], np.int64)
        columns = np.array([cells[name] for name in digest.cells], np.int64)
        jobs = (rows[:, None] * len(cells) + columns).reshape(-1)
        # A digest numbers its states from 1; state 0 is a job that did not run.
        of_state = np.array([NOTHING, *(_RANKS[s.verdict] for s in digest.states)], np.uint8)
        states = digest.table.reshape(-1).astype(np.int64)
        ranks[run, jobs] = of_state[states]
        tracker.add(run, jobs, states, StateTable(dict(enumerate(digest.states, 1))), ran=jobs)
    # A confirmation changes nothing for a reader of the feed, which has shown the opening.
    events = (event for event in tracker.events if event.kind is not RegressionStatus.CONFIRMED)
    return History(
        runs=tuple(map(_make_point, ordered)),
        cases=tuple(cases),
        cells=tuple(cells),
        ranks=ranks.reshape(len(ordered), len(cases), len(cells)),
        regressions=tuple(tracker.list_regressions()),
        events=tuple(events),
        releases={
            cell: release
            for digest in ordered
            for cell, release in zip(digest.cells, digest.releases, strict=True)
        },
    )


def order_runs(digests: Iterable[Digest]) -> list[Digest]:
    """Return runs by time, then name; the order never depends on the order of the digests.

    Args:
        digests: Digests of the runs, in any order.
    """
    unknown = datetime.min.replace(tzinfo=UTC)
    keys = {digest: (parse_time(digest.started) or unknown, digest.run) for digest in digests}
    counts = Counter(keys.values())
    # Copies of a run share time and name. The text of a digest is long, so it is made for these
    # alone.
    return sorted(keys, key=lambda d: (*keys[d], repr(d) if counts[keys[d]] > 1 else ""))


def select_runs(digests: Iterable[Digest]) -> list[Digest]:
    """Return the runs to show: the newest run, and the newest complete run of each matrix.

    Older runs, and earlier runs of a few cases, appear in the history only.

    Args:
        digests: The digests of all runs.

    Returns:
        The digests of the selected runs, the oldest first.
    """
    ordered = order_runs(digests)
    newest = {digest.matrix: digest for digest in ordered if digest.matrix and not digest.part}
    chosen = [*newest.values(), *ordered[-1:]]
    # By identity: comparing two digests for equality compares their tables of jobs.
    return [digest for digest in ordered if any(digest is other for other in chosen)]


def _rename_cells(digest: Digest) -> Digest:
    """Return a digest whose cells have stable ids: all nightlies of a place share an id."""
    places = make_stable_cell_ids(digest.cells)
    return structs.replace(digest, cells=tuple(places[cell] for cell in digest.cells))


def _number_cells(digests: Iterable[Digest]) -> dict[str, int]:
    """Return the number of each stable cell id: by track, then by release."""
    releases: dict[str, str] = {}
    newest: dict[str, str] = {}
    for digest in digests:
        releases.update(zip(digest.cells, digest.releases, strict=True))
        # Digests are ordered by time, so a nightly place is sorted by its newest nightly.
        newest.update((place, cell) for cell, place in make_stable_cell_ids(digest.cells).items())
    tracks = group_tracks(RunCell(id=cell, versions={"jax": r}) for cell, r in releases.items())
    ids = [cell.id for track in tracks for cell in track.cells]
    order = {name: at for at, name in enumerate(ids)}
    ordered = sorted(newest, key=lambda place: (order[newest[place]], place))
    return {place: number for number, place in enumerate(ordered)}


def _make_point(digest: Digest) -> RunPoint:
    return RunPoint(
        id=digest.run,
        started=digest.started,
        finished=digest.finished,
        time=parse_time(digest.started),
        exit=digest.exit,
        matrix=digest.matrix,
        counts=digest.counts,
        unexpected=digest.unexpected_count,
    )


def find_verdict(rank: int) -> Verdict | None:
    """Return the verdict of a rank, None for `NOTHING`."""
    return None if rank == NOTHING else WORST_FIRST[rank]


def encode_run_lengths(values: Iterable[T]) -> list[tuple[T, int]]:
    """Return each run of equal neighbours as its value and its length."""
    return [(value, sum(1 for _ in members)) for value, members in groupby(values)]


def carry_forward(ranks: Sequence[int]) -> list[int]:
    """Return ranks in which each `NOTHING` between two ranks is replaced by the rank before it.

    A run that did not run a job says nothing about it. Before the first and after the last run of
    a job nothing is known, so `NOTHING` stays.

    Args:
        ranks: Ranks by run.
    """
    known = [place for place, rank in enumerate(ranks) if rank != NOTHING]
    filled = list(ranks)
    for before, after in pairwise(known):
        filled[before:after] = [ranks[before]] * (after - before)
    return filled
