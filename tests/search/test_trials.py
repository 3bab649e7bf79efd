"""The trials of a search: records of an earlier search that count, and repeated trials."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from conformance.cells.cell import Cell
from conformance.engine.cache.blobs import BlobStore
from conformance.engine.job import PlannedCell
from conformance.errors import InfrastructureError
from conformance.judge.tolerance import Tolerance
from conformance.model.outcome import Outcome, Stage
from conformance.model.record import ErrorInfo, Record
from conformance.search.endpoints import PredicateOptions, choose_predicate
from conformance.search.point_predicates import RepeatedPredicate
from conformance.search.predicates import BAD, GOOD
from conformance.search.trials import RECOUNTS, CellTrials

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from conformance.search.answers import SearchStep

RELEASES = ("0.5.0", "0.6.0", "path:/env/bin/python")


def planned(point: int) -> PlannedCell:
    """Return the cell of a point."""
    cell = Cell(release=RELEASES[point], python="3.11", devices=1)
    return PlannedCell(cell=cell, versions={}, lock_hash="l", cell_hash=f"h{point}")


def record_of(point: int, outcome: Outcome = Outcome.OK) -> Record:
    """Return the record of a point."""
    cell = planned(point)
    said = str(outcome)
    error = None if outcome is Outcome.OK else ErrorInfo(type=said, message=said, signature=said)
    return Record(
        case="f/a", cell=cell.cell.id, case_hash="c", cell_hash=cell.cell_hash, outcome=outcome,
        stage=Stage.EXECUTE, error=error,
    )  # fmt: skip


class World:
    """A target that ends in a way of its own at each trial of a point, in turns."""

    hash = "c"

    def __init__(self, *outcomes: tuple[Outcome, ...]) -> None:
        self._outcomes = outcomes
        self.tried: list[int] = []

    def get_versions(self, planned: PlannedCell) -> Mapping[str, str]:
        """Return the versions of all packages in a cell."""
        return planned.versions

    def probe(self, cells: Sequence[PlannedCell], *, again: bool = False) -> Iterator[Record]:
        """Yield a record for each cell."""
        del again
        for cell in cells:
            point = int(cell.cell_hash[1:])
            outcomes = self._outcomes[point]
            outcome = outcomes[self.tried.count(point) % len(outcomes)]
            self.tried.append(point)
            yield record_of(point, outcome)


WORKS = (Outcome.OK,)
FAILS = (Outcome.RAISED,)


def trials_of(folder: Path, world: World, known: Iterable[Record] = ()) -> CellTrials[int]:
    """Return trials that keep nothing."""
    return CellTrials(
        cell_of=planned, prober=world, blobs=BlobStore(folder), keep=lambda _: None, known=known,
        tolerance=Tolerance(),
    )  # fmt: skip


def by_exit(trials: CellTrials[int], good: int, bad: int) -> RepeatedPredicate:
    """Return the predicate between two points that were tried."""
    return RepeatedPredicate(
        choose_predicate(trials.make_endpoints(good, bad), PredicateOptions("exit"))
    )


def test_a_record_of_the_same_cell_is_replayed(tmp_path: Path) -> None:
    """Once, and not for a confirmation."""
    world = World(WORKS, FAILS)
    trials = trials_of(tmp_path, world, [record_of(0), record_of(1, Outcome.RAISED)])
    trials.try_endpoints(0, 1)
    assert world.tried == []
    predicate = by_exit(trials, 0, 1)
    assert trials.decide(predicate, (0, 1)) == {0: GOOD, 1: BAD}
    assert all(step.replayed for step in trials.steps)
    assert trials.confirm(predicate, 0, 1) == {}
    assert world.tried == [0, 1]
    assert [(step.again, step.replayed) for step in trials.steps[2:]] == [(True, False)] * 2


@pytest.mark.parametrize(
    ("point", "known"),
    [
        (0, replace(record_of(0), cell_hash="another")),
        (0, replace(record_of(0), cell_hash="")),
        (0, record_of(0, Outcome.INFRA)),
        (2, record_of(2)),
    ],
)
def test_other_records_are_not_replayed(tmp_path: Path, point: int, known: Record) -> None:
    """Of a changed cell, without a result, or of a user's own environment."""
    world = World(WORKS, FAILS, WORKS)
    trials_of(tmp_path, world, [known]).try_points([point])
    assert world.tried == [point]


def test_a_record_is_logged_before_it_is_used(tmp_path: Path) -> None:
    """An interrupted search continues after it."""
    kept: list[tuple[str, bool]] = []
    steps: list[SearchStep[int]] = []
    trials = trials_of(tmp_path, World(WORKS, FAILS))
    trials.keep = lambda record: kept.append((record.cell, 0 in trials.samples))
    trials.progress = steps.append
    trials.announced = {0}
    trials.try_points([0])
    assert kept == [(planned(0).cell.id, False)]
    assert [(step.point, step.state, step.summary) for step in steps] == [(0, None, "ok")]


def test_a_flaky_point_is_recounted(tmp_path: Path) -> None:
    """The other point is confirmed once."""
    world = World(WORKS, (*FAILS, *WORKS))
    trials = trials_of(tmp_path, world)
    trials.try_endpoints(0, 1)
    predicate = by_exit(trials, 0, 1)
    trials.decide(predicate, (0, 1))
    flaky = trials.confirm(predicate, 0, 1)
    assert flaky == {1: Counter({BAD: 3, GOOD: 2})}
    assert Counter(world.tried) == {0: 2, 1: 2 + RECOUNTS}


def test_an_endpoint_that_cannot_be_tried_now_is_an_error(tmp_path: Path) -> None:
    """The reason may be temporary."""
    trials = trials_of(tmp_path, World(WORKS, (Outcome.INFRA,)))
    with pytest.raises(InfrastructureError, match="infra; the same command goes on where it was"):
        trials.try_endpoints(0, 1)
