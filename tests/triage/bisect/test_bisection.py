"""A bisection of what a script of endings and figures says, from both ends to the answer."""

from __future__ import annotations

import random
from contextlib import closing
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from packaging.version import Version

from conformance.cells.cell import Cell
from conformance.engine.job import PlannedCell
from conformance.engine.runs.directory import Results, RunDirectory
from conformance.engine.workers.preparation import Preparation
from conformance.judge.tolerance import Tolerance
from conformance.model.outcome import Outcome, Stage
from conformance.model.record import ErrorInfo, Record
from conformance.search.axes import AxisCells, AxisPoint
from conformance.search.endpoints import EndpointsError, PredicateOptions
from conformance.search.metrics import TIME
from conformance.search.point_predicates import MARGIN
from conformance.search.predicates import PointKind
from conformance.search.trials import CellTrials
from conformance.triage.bisect.bisection import UNLIKELY, Bisection, compute_runs
from conformance.triage.bisect.endpoints import EndpointSearch

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from conformance.triage.bisect.bisection import BisectAnswer

ENDINGS = ["good", "bad", "other", "third", "silent"]


class Told:
    """A target that at each point ends as is told: an ending, or seconds by a random number.

    Args:
        points: One for each point; of several endings it shows one after the other, in turns.
        seed: Of the noise.
    """

    hash = "c"

    def __init__(self, points: Sequence[str | float | tuple[str, ...]], seed: int = 0) -> None:
        self.points = points
        self.probes: list[int] = []
        self._noise = random.Random(seed)  # noqa: S311 - no secret

    def get_versions(self, planned: PlannedCell) -> Mapping[str, str]:
        """Return the versions of all packages in a cell."""
        return planned.versions

    def probe(self, cells: Sequence[PlannedCell], *, again: bool = False) -> Iterator[Record]:
        """Yield a record for each cell; see `conformance.search.prober.Prober`."""
        del again
        for planned in cells:
            number = int(planned.cell_hash)
            told = self.points[number]
            if isinstance(told, tuple):
                told = told[self.probes.count(number) % len(told)]
            self.probes.append(number)
            yield self._record(planned, told)

    def _record(self, planned: PlannedCell, told: str | float) -> Record:
        seconds = told * self._noise.uniform(0.95, 1.05) if isinstance(told, float) else 0.1
        failed = told in {"bad", "other", "third", "lacks"}
        outcome = Outcome.RAISED if failed else Outcome.OK
        if told == "crash":
            outcome = Outcome.CRASHED
        if told == "silent":
            outcome = Outcome.UNSUPPORTED
        type_ = str(outcome) if told == "silent" else f"{told}Error"
        message = "m"
        if told == "lacks":
            type_, message = "AttributeError", "module 'jax' has no attribute 'new'"
        error = ErrorInfo(type=type_, message=message, signature=f"{type_}: {message}")
        return Record(
            case="script/told.py", cell=planned.cell.id, case_hash="h",
            cell_hash=planned.cell_hash, outcome=outcome, stage=Stage.EXECUTE,
            error=None if outcome is Outcome.OK else error, seconds={"job": seconds},
        )  # fmt: skip


def points_of(count: int) -> list[AxisPoint]:
    """Return points that are called by their numbers."""
    cells = (Cell(release=f"0.{number}.0", python="3.11", devices=1) for number in range(count))
    return [AxisPoint(label=cell.release, cell=cell) for cell in cells]


def planned(cells: Iterable[Cell]) -> Preparation:
    """Plan for cells, whose hash is their number."""
    found = [
        PlannedCell(
            cell=cell, versions={}, lock_hash="l", cell_hash=str(Version(cell.release).minor)
        )
        for cell in cells
    ]
    return Preparation(cells=tuple(found), exclusions=(), locks={})


def bisected(
    folder: Path, told: Told, *, reverse: bool = False, timed: bool = False, **options: Any
) -> BisectAnswer:
    """Search, with the log of a folder."""
    directory = RunDirectory(folder)
    points = AxisCells(points_of(len(told.points)), planned, check=lambda: None)
    known = directory.read_records()
    with closing(Results(directory)) as log:
        trials = CellTrials[int](
            cell_of=points.__getitem__, name_of=points.labels.__getitem__, prober=told,
            blobs=directory.blobs, keep=log.append, known=known, tolerance=Tolerance(),
            metric=TIME if timed else None,
        )  # fmt: skip
        endpoints = EndpointSearch(trials=trials, last=len(points) - 1, reverse=reverse, **options)
        return Bisection(points=points, trials=trials, endpoints=endpoints).run()


@given(st.lists(st.sampled_from(ENDINGS), max_size=20), st.booleans(), st.integers(0, 2**32))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
def test_the_answer_agrees_with_the_axis(
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
    assert answer.is_confirmed is not bool(answer.others)
    for change in answer.changes:
        assert points[change.before] != points[change.after]
        between = points[change.before + 1 : change.after]
        assert set(between) <= {"silent"}
    first_bad = points[answer.first_bad]
    assert first_bad == "bad" or (first_bad in {"other", "third"} and not reverse)
    assert points[answer.last_good] == "good"
    assert all(one.after <= other.before for one, other in pairwise(answer.changes))


@pytest.mark.parametrize("reverse", [False, True])
def test_a_metric_is_measured_in_rounds(tmp_path: Path, reverse: bool) -> None:
    """Few samples if they are clear; the change is where the metric crosses the threshold."""
    seconds = [1.0] * 9 + [2.0] * 7
    told = Told(seconds[::-1] if reverse else seconds)
    answer = bisected(tmp_path, told, reverse=reverse, timed=True)
    assert answer.is_confirmed
    assert (answer.last_good, answer.first_bad) == ((7, 6) if reverse else (8, 9))
    counts = [len(step.samples) for step in answer.steps]
    assert counts == [2 * MARGIN] * 2 + [MARGIN] * (len(counts) - 2)


def test_samples_of_the_log_are_reused(tmp_path: Path) -> None:
    """An interrupted search measures points again only for confirmation."""
    seconds = [1.0] * 5 + [2.0] * 5
    first = bisected(tmp_path, Told(seconds), timed=True)
    again = Told(seconds)
    second = bisected(tmp_path, again, timed=True)
    assert second.first_bad == first.first_bad == 5
    assert len(again.probes) == 2 * MARGIN
    assert all(step.replayed for step in second.steps if not step.again)


def test_a_metric_with_overlapping_ends_is_ambiguous(tmp_path: Path) -> None:
    """Nothing is searched between the ends."""
    told = Told([1.0] * 5)
    with pytest.raises(EndpointsError, match="ambiguous, the ends overlap"):
        bisected(tmp_path, told, timed=True)
    assert set(told.probes) == {0, 4}


@pytest.mark.parametrize("option", ["scan", "every"])
def test_a_scan_finds_the_points_that_are_slow_between_fast_ends(
    tmp_path: Path, option: str
) -> None:
    """Each release in between is measured once; what is far from the good end decides."""
    told = Told([1.0] * 6 + [9.0] * 2 + [1.0] * 4 + [5.0] + [1.0])
    answer = bisected(tmp_path, told, timed=True, **{option: True})
    assert (answer.last_good, answer.first_bad) == (5, 6)
    assert answer.is_confirmed
    kinds = [(one.first, one.last, one.state.kind) for one in answer.timeline]
    assert kinds == [
        (0, 5, PointKind.GOOD), (6, 7, PointKind.BAD), (8, 11, PointKind.GOOD),
        (12, 12, PointKind.BAD), (13, 13, PointKind.GOOD),
    ]  # fmt: skip


def test_every_looks_beyond_ends_that_differ(tmp_path: Path) -> None:
    """The release that is slowest matters more than the one from which on a little was lost."""
    seconds = [1.0, 1.0, 1.5, 1.5, 8.0, 1.5]
    assert bisected(tmp_path / "ends", Told(seconds), timed=True).first_bad == 2
    assert bisected(tmp_path / "every", Told(seconds), timed=True, every=True).first_bad == 4


def test_every_takes_a_slow_good_end_for_bad(tmp_path: Path) -> None:
    """What became faster was fixed."""
    answer = bisected(tmp_path, Told([4.0, 4.0, 1.0, 1.0]), timed=True, every=True)
    assert answer.swapped
    assert (answer.first_bad, answer.last_good) == (1, 2)


def test_a_scan_in_which_only_the_good_end_works_says_so(tmp_path: Path) -> None:
    """A point that fails has no time to compare."""
    with pytest.raises(EndpointsError, match="no time to measure: badError"):
        bisected(tmp_path, Told([1.0, "bad", "bad"]), timed=True, every=True)


def test_a_scan_without_a_slow_point_is_ambiguous(tmp_path: Path) -> None:
    """All points were measured, which the message says."""
    with pytest.raises(EndpointsError, match=r"overlap: .*; no other point is further from it"):
        bisected(tmp_path, Told([1.0] * 6), timed=True, scan=True)


def test_a_point_that_fails_is_neither_good_nor_bad_by_a_metric(tmp_path: Path) -> None:
    """It takes no time that could be compared."""
    answer = bisected(tmp_path, Told([1.0, "other", 2.0]), timed=True)
    assert answer.states[1].kind is PointKind.OTHER
    assert answer.others == [1]


@given(
    st.lists(st.sampled_from(["good", "bad", "other", "third", "silent"]), min_size=1, max_size=12)
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
def test_a_scan_finds_every_stretch(
    tmp_path_factory: pytest.TempPathFactory, inner: list[str]
) -> None:
    """Between ends that are alike, or of which each fails in its own way."""
    points = ["good", *inner, "good"]
    told = Told(points)
    folder = tmp_path_factory.mktemp("log")
    if not {"bad", "other", "third"}.intersection(inner):
        with pytest.raises(EndpointsError, match=f"all {len(points)} points were tried"):
            bisected(folder, told, scan=True)
        return
    answer = bisected(folder, told, scan=True)
    assert set(told.probes) == set(range(len(points)))
    shown = [points[n] for one in answer.timeline for n in range(one.first, one.last + 1)]
    assert len(shown) == len(points)
    assert points[answer.first_bad] not in ("good", "silent")
    assert points[answer.last_good] == "good"


def test_the_good_end_moves_to_the_first_point_with_the_interface(tmp_path: Path) -> None:
    """The bad end may behave like the first point."""
    answer = bisected(tmp_path / "w", Told(["lacks", "lacks", "good", "bad", "good"]), scan=True)
    assert (answer.last_good, answer.first_bad, answer.swapped) == (2, 3, False)
    answer = bisected(tmp_path / "f", Told(["lacks", "lacks", "good", "good", "good"]), scan=True)
    assert (answer.last_good, answer.first_bad, answer.swapped) == (2, 1, True)
    answer = bisected(tmp_path / "o", Told(["lacks", "other", "other", "good", "good"]), scan=True)
    assert (answer.last_good, answer.first_bad, answer.swapped) == (3, 2, True)


@pytest.mark.parametrize(
    ("points", "answer"),
    [
        (["other", "other", "good", "good", "bad", "bad"], (3, 4)),
        (["other", "bad", "good", "bad", "third", "bad"], (2, 3)),
        (["bad", "good", "good", "bad"], (2, 3)),
    ],
)
def test_a_working_point_between_failing_ends_is_good(
    tmp_path: Path, points: list[str], answer: tuple[int, int]
) -> None:
    """An interface may be missing at the good end: it says nothing of the bug."""
    found = bisected(tmp_path, Told(points), scan=True)
    assert (found.last_good, found.first_bad) == answer
    assert not found.swapped


def test_without_a_working_point_the_failures_are_compared(tmp_path: Path) -> None:
    """Where one failure became another; if all are equal, the message lists them."""
    with pytest.raises(EndpointsError, match=r"badError: m \(2\); otherError: m \(1\)"):
        bisected(tmp_path / "alike", Told(["bad", "other", "bad"]), scan=True)
    answer = bisected(tmp_path / "two", Told(["other", "other", "bad", "bad"]), scan=True)
    assert (answer.last_good, answer.first_bad) == (1, 2)
    assert answer.fails(answer.good_end)


def test_a_failing_good_end_makes_a_search_for_the_fix(tmp_path: Path) -> None:
    """Of the last failure, whatever failed before."""
    answer = bisected(tmp_path, Told(["bad", "other", "third", "good"]))
    assert (answer.swapped, answer.reverse, answer.others) == (True, True, [])
    assert (answer.last_good, answer.first_bad) == (3, 2)


def test_a_point_that_is_good_by_chance_is_tried_again(tmp_path: Path) -> None:
    """The rate of a flaky bad point decides how often."""
    shy = ("good", "good", "bad", "good", "bad")
    told = Told(["good", "good", "good", shy, shy, ("good", "bad"), ("bad", "good", "good")])
    answer = bisected(tmp_path, told)
    assert (answer.last_good, answer.first_bad) == (2, 3)
    assert answer.is_confirmed
    assert answer.resampled is not None
    assert answer.resampled.chance <= UNLIKELY
    assert told.probes.count(2) >= answer.resampled.runs == compute_runs(answer.resampled.rate)


def test_a_flaky_good_end_is_an_error(tmp_path: Path) -> None:
    """No point before it is known to be good."""
    told = Told([("good",) * 4 + ("bad",), ("bad", "good")])
    with pytest.raises(EndpointsError, match=r"0\.0\.0 is bad, too, at times: badError: m \(1 of"):
        bisected(tmp_path, told)


def test_repeat_sets_the_samples_of_a_good_point(tmp_path: Path) -> None:
    """As often as `--repeat` says."""
    told = Told(["good", "good", ("good", "good", "bad"), "bad"])
    answer = bisected(tmp_path, told, repeat=3)
    assert (answer.last_good, answer.first_bad) == (1, 2)
    assert told.probes.count(0) == 3


def test_every_point_is_tried_on_request(tmp_path: Path) -> None:
    """A crash in between is worse than the state of the bad end."""
    told = Told(["good", "good", "crash", "good", "bad", "bad"])
    assert bisected(tmp_path / "few", told).first_bad == 4
    answer = bisected(tmp_path / "every", told, every=True)
    assert (answer.last_good, answer.first_bad) == (1, 2)
    assert [one.tried for one in answer.timeline] == [2, 1, 1, 2]


def test_an_end_without_an_environment_is_moved(tmp_path: Path) -> None:
    """To the outermost point that can be tried."""
    told = Told(["silent", "silent", "silent", "good", "good", "bad"])
    answer = bisected(tmp_path, told, scan=True)
    assert (answer.last_good, answer.first_bad) == (4, 5)
    assert answer.timeline[0].state.kind is PointKind.UNKNOWN


def test_the_behaviour_of_a_report_is_searched(tmp_path: Path) -> None:
    """The bad end may behave differently by now."""
    told = Told(["good", "good", "other", "good", "bad"])
    assert bisected(tmp_path / "end", told).first_bad == 4
    answer = bisected(tmp_path / "report", told, seen_on=2)
    assert (answer.last_good, answer.first_bad) == (1, 2)
    assert bisected(tmp_path / "good", told, seen_on=1).first_bad == 4


def test_the_first_of_several_failures_is_the_first_bad_point(tmp_path: Path) -> None:
    """A target that works is bad from its first failure on, unless it works again after that."""
    answer = bisected(tmp_path / "row", Told(["good", "good", "other", "third", "bad"]))
    assert (answer.last_good, answer.first_bad, answer.is_confirmed) == (1, 2, True)
    answer = bisected(tmp_path / "apart", Told(["good", "other", "good", "good", "bad"]))
    assert (answer.last_good, answer.first_bad) == (3, 4)
    told, options = Told(["good", "other", "bad"]), PredicateOptions("ending")
    answer = bisected(tmp_path / "asked", told, options=options)
    assert (answer.others, answer.first_bad, answer.is_confirmed) == ([1], 2, False)


def test_a_reported_failure_between_the_ends_is_searched(tmp_path: Path) -> None:
    """Its beginning, otherwise its fix, whatever fails at the ends."""
    began = Told(["other", "good", "bad", "good", "third"])
    answer = bisected(tmp_path / "began", began, seen_on=2, scan=True)
    assert (answer.last_good, answer.first_bad, answer.swapped) == (1, 2, False)
    mended = Told(["other", "bad", "bad", "good", "third"])
    answer = bisected(tmp_path / "mended", mended, seen_on=1, scan=True)
    assert (answer.last_good, answer.first_bad, answer.swapped) == (3, 2, True)
