"""A bisection of what a script of endings and figures says, from both ends to the answer."""

from __future__ import annotations

import random
from contextlib import closing
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from packaging.version import Version

from conformance.cells.cell import Cell
from conformance.engine.job import PlannedCell
from conformance.engine.prepare import Preparation
from conformance.engine.rundir import Results, RunDirectory
from conformance.judge.tolerance import Tolerance
from conformance.model.outcome import Outcome, Stage
from conformance.model.record import ErrorInfo, Record
from conformance.triage.bisect.axis import Point
from conformance.triage.bisect.bisection import Answer, Bisection
from conformance.triage.bisect.points import Points
from conformance.triage.questions.figures import MARGIN, time_of
from conformance.triage.questions.predicate import EndsError
from conformance.triage.questions.state import Kind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

ENDINGS = ["good", "bad", "other", "third", "silent"]


class Told:
    """A target that at each point ends as is told: an ending, or seconds by a random number.

    Args:
        points: One for each point.
        seed: Of the noise.
    """

    hash = "c"

    def __init__(self, points: Sequence[str | float], seed: int = 0) -> None:
        self.points = points
        self.probes: list[int] = []
        self._noise = random.Random(seed)  # noqa: S311 - no secret

    def probe(self, cells: Sequence[PlannedCell], *, again: bool = False) -> Iterator[Record]:
        """Yield a record for each cell; see `conformance.triage.bisect.prober.Prober`."""
        del again
        for planned in cells:
            number = int(planned.cell_hash)
            self.probes.append(number)
            yield self._record(planned, self.points[number])

    def _record(self, planned: PlannedCell, told: str | float) -> Record:
        seconds = told * self._noise.uniform(0.95, 1.05) if isinstance(told, float) else 0.1
        failed = told in {"bad", "other", "third"}
        outcome = Outcome.RAISED if failed else Outcome.OK
        if told == "silent":
            outcome = Outcome.UNSUPPORTED
        error = ErrorInfo(type=f"{told}Error", message="m", signature=f"{told}Error: m")
        return Record(
            case="script/told.py", cell=planned.cell.id, case_hash="h",
            cell_hash=planned.cell_hash, outcome=outcome, stage=Stage.EXECUTE,
            error=None if outcome is Outcome.OK else error, seconds={"job": seconds},
        )  # fmt: skip


def points_of(count: int) -> list[Point]:
    """Return points that are called by their numbers."""
    cells = (Cell(release=f"0.{number}.0", python="3.11", devices=1) for number in range(count))
    return [Point(label=cell.release, cell=cell) for cell in cells]


def planned(cells: Iterable[Cell]) -> Preparation:
    """Plan for cells, whose hash is their number."""
    found = [
        PlannedCell(
            cell=cell, versions={}, lock_hash="l", cell_hash=str(Version(cell.release).minor)
        )
        for cell in cells
    ]
    return Preparation(cells=tuple(found), exclusions=(), locks={})


def bisected(folder: Path, told: Told, *, reverse: bool = False, timed: bool = False) -> Answer:
    """Search, with the log of a folder."""
    directory = RunDirectory(folder)
    points = Points(points_of(len(told.points)), planned, check=lambda: None)
    known = directory.read_records()
    with closing(Results(directory)) as log:
        return Bisection(
            points=points, reverse=reverse, prober=told, blobs=directory.blobs, log=log,
            known=known, tolerance=Tolerance(),
            figure=time_of() if timed else None, width=1, progress=lambda step: None,
        ).run()  # fmt: skip


@given(st.lists(st.sampled_from(ENDINGS), max_size=20), st.booleans(), st.integers(0, 2**32))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
def test_what_is_named_is_so(
    tmp_path_factory: pytest.TempPathFactory,
    inner: list[str],
    reverse: bool,
    seed: int,
) -> None:
    """Every change lies between neighbours that show it, but for points that say nothing."""
    ends = ("bad", "good") if reverse else ("good", "bad")
    points = [ends[0], *inner, ends[1]]
    told = Told(points, seed)
    answer = bisected(tmp_path_factory.mktemp("log"), told, reverse=reverse)
    assert answer.confirmed
    for change in answer.changes:
        assert points[change.before] != points[change.after]
        between = points[change.before + 1 : change.after]
        assert set(between) <= {"silent"}
    assert points[answer.first_bad] == "bad"
    assert points[answer.last_good] == "good"
    assert all(one.after <= other.before for one, other in pairwise(answer.changes))


@pytest.mark.parametrize("reverse", [False, True])
def test_a_figure_is_measured_in_rounds(tmp_path: Path, reverse: bool) -> None:
    """Few samples where they are clear; the change is where the figure crosses."""
    seconds = [1.0] * 9 + [2.0] * 7
    told = Told(seconds[::-1] if reverse else seconds)
    answer = bisected(tmp_path, told, reverse=reverse, timed=True)
    assert answer.confirmed
    assert (answer.last_good, answer.first_bad) == ((7, 6) if reverse else (8, 9))
    counts = [len(step.samples) for step in answer.steps]
    assert counts == [2 * MARGIN] * 2 + [MARGIN] * (len(counts) - 2)


def test_samples_of_the_log_count(tmp_path: Path) -> None:
    """A search that was interrupted measures no point anew, but for its confirmation."""
    seconds = [1.0] * 5 + [2.0] * 5
    first = bisected(tmp_path, Told(seconds), timed=True)
    again = Told(seconds)
    second = bisected(tmp_path, again, timed=True)
    assert second.first_bad == first.first_bad == 5
    assert len(again.probes) == 2 * MARGIN
    assert all(step.replayed for step in second.steps if not step.again)


def test_a_figure_that_does_not_differ_is_ambiguous(tmp_path: Path) -> None:
    """Nothing is searched between ends that overlap."""
    told = Told([1.0] * 5)
    with pytest.raises(EndsError, match="ambiguous, the ends overlap"):
        bisected(tmp_path, told, timed=True)
    assert set(told.probes) == {0, 4}


def test_a_point_that_fails_is_neither(tmp_path: Path) -> None:
    """It takes no time that could be compared."""
    answer = bisected(tmp_path, Told([1.0, "other", 2.0]), timed=True)
    assert answer.states[1].kind is Kind.OTHER
    assert answer.others == [1]
