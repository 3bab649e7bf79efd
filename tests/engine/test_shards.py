"""Shards of a plan: every job once, about equally long, each for one kind of host."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from hypothesis import example, given
from hypothesis import strategies as st

from conformance.engine.shards import OPEN, Shard, split_into_shards

from .worlds import job, planned

if TYPE_CHECKING:
    from conformance.engine.job import Job

FOLDER = Path("cases")


def plan_of(*cells: tuple[str, list[float]]) -> tuple[list[Job], dict[Job, float]]:
    """Return jobs, cell after cell, and how long each takes."""
    seconds = {}
    for number, (platform, durations) in enumerate(cells):
        place = planned(f"0.6.{number}", platform=platform)
        for n, duration in enumerate(durations):
            seconds[job(FOLDER, f"case{n}", place)] = duration
    return list(seconds), seconds


def cells_of(shard: Shard) -> list[str]:
    """Return the cells of a part."""
    return list(dict.fromkeys(one.planned.cell.id for one in shard.jobs))


DURATIONS = st.lists(st.floats(0.01, 100), min_size=1, max_size=12)
CELLS = st.lists(st.tuples(st.just("cpu"), DURATIONS), min_size=1, max_size=6)


@given(CELLS, st.integers(1, 20))
@example([("cpu", [1.0]), ("cpu", [0.01])], 1)
def test_shards_have_every_job_once(cells: list[tuple[str, list[float]]], count: int) -> None:
    """In the order of the plan; as many as requested, none of them empty."""
    jobs, seconds = plan_of(*cells)
    found = split_into_shards(jobs, count, seconds.__getitem__)
    assert [one for shard in found for one in shard.jobs] == jobs
    assert len(found) == min(count, len(jobs))
    assert all(shard.jobs for shard in found)


@given(CELLS, st.integers(1, 8))
@example(
    [
        ("cpu", [6.0, 1.0, 5.0, 35.0, 84.0, 90.0]),
        ("cpu", [88.0, 1.0, 2.0, 9.0, 58.0, 90.0, 90.0]),
        ("cpu", [1.0, 1.0, 47.0, 90.0, 90.0, 2.0, 54.0, 90.0]),
        ("cpu", [71.0, 1.0, 28.0, 33.0, 48.0, 79.0, 90.0, 90.0]),
    ],
    2,
)
def test_no_shard_is_much_longer_than_necessary(
    cells: list[tuple[str, list[float]]], count: int
) -> None:
    """At most an equal part, the opening of a cell at each cut, and the longest job."""
    jobs, seconds = plan_of(*cells)
    found = split_into_shards(jobs, count, seconds.__getitem__)
    opened = len(cells) + count - 1
    equal = (sum(seconds.values()) + OPEN * opened) / count
    assert max(shard.seconds for shard in found) <= equal + max(seconds.values()) + OPEN + 1e-6


@given(CELLS, st.integers(1, 8))
def test_a_shard_has_its_duration(cells: list[tuple[str, list[float]]], count: int) -> None:
    """Its jobs, and each of its cells opened once."""
    jobs, seconds = plan_of(*cells)
    for shard in split_into_shards(jobs, count, seconds.__getitem__):
        took = sum(seconds[one] for one in shard.jobs) + OPEN * len(cells_of(shard))
        assert abs(shard.seconds - took) < 1e-6


def test_short_cells_stay_together() -> None:
    """Opening a cell costs more than its jobs."""
    jobs, seconds = plan_of(*[("cpu", [1.0, 1.0])] * 4)
    found = split_into_shards(jobs, 2, seconds.__getitem__)
    assert [len(cells_of(shard)) for shard in found] == [2, 2]


def test_a_long_cell_is_divided() -> None:
    """By the duration of jobs, not by their number."""
    jobs, seconds = plan_of(("cpu", [300.0, 1.0, 1.0, 1.0]), ("cpu", [100.0, 100.0]))
    first, second = split_into_shards(jobs, 2, seconds.__getitem__)
    assert [seconds[one] for one in first.jobs] == [300.0]
    assert [seconds[one] for one in second.jobs] == [1.0, 1.0, 1.0, 100.0, 100.0]


def test_accelerators_have_separate_shards() -> None:
    """All jobs of a shard need the same kind of host."""
    jobs, seconds = plan_of(("cpu", [1.0] * 9), ("gpu", [1.0]), ("tpu:v5e:2x2", [1.0] * 3))
    found = split_into_shards(jobs, 4, seconds.__getitem__)
    assert [shard.runner for shard in found] == ["", "", "gpu", ""]
    assert {one.planned.cell.platform for one in found[2].jobs} == {"gpu"}


def test_fewer_shards_than_kinds_of_hosts() -> None:
    """Then a shard needs a host with every kind."""
    jobs, seconds = plan_of(("cpu", [1.0]), ("gpu", [1.0]))
    (only,) = split_into_shards(jobs, 1, seconds.__getitem__)
    assert only.jobs == jobs
    assert only.runner == "gpu"


def test_no_jobs_make_no_shards() -> None:
    """For any requested number."""
    assert split_into_shards([], 3, lambda _: 1.0) == []
