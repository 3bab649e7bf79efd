"""Batches: every job once and in order, of one cell, about as long as they should be."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from conformance.engine.batches import MOST, cut_batches, get_cell_key, order_by_cell

from .worlds import job, planned

if TYPE_CHECKING:
    from conformance.engine.job import Job
    from conformance.model.case import Kind

FOLDER = Path("cases")


def make_jobs(sizes: list[list[int]], kind: Kind = "program") -> list[Job]:
    """Return jobs, so many of each file in each cell."""
    jobs = []
    for number, files in enumerate(sizes):
        place = planned(f"0.6.{number}")
        for name, size in enumerate(files):
            for n in range(size):
                one = job(FOLDER, f"f{name}_{n}", place)
                file = FOLDER / "family" / f"f{name}.py"
                jobs.append(replace(one, case=replace(one.case, file=file, kind=kind)))
    return jobs


SIZES = st.lists(st.lists(st.integers(1, 20), min_size=1, max_size=4), min_size=1, max_size=3)


@given(SIZES, st.floats(0.01, 50), st.floats(0, 100))
def test_batches_have_every_job_once(sizes: list[list[int]], seconds: float, limit: float) -> None:
    """In order, of one cell each; only a single job takes longer than the limit."""
    jobs = make_jobs(sizes)
    batches = list(cut_batches(jobs, limit, lambda _: seconds))
    assert [one for batch in batches for one in batch.jobs] == jobs
    for batch in batches:
        assert {get_cell_key(one) for one in batch.jobs} == {batch.cell}
        assert batch.seconds <= limit or len(batch.jobs) == 1
        assert len(batch.jobs) <= MOST


@given(SIZES, st.floats(0, 100))
def test_a_file_of_tests_stays_whole(sizes: list[list[int]], limit: float) -> None:
    """Its tests may depend on each other."""
    jobs = make_jobs(sizes, "test")
    places: dict[tuple[str, Path], int] = {}
    for number, batch in enumerate(cut_batches(jobs, limit, lambda _: 1.0)):
        for one in batch.jobs:
            assert places.setdefault((one.planned.cell.id, one.case.file), number) == number


def test_jobs_that_need_more_packages_come_last() -> None:
    """Jobs of a cell and file stay together."""
    jobs = make_jobs([[2], [2]])
    jobs[0] = replace(jobs[0], case=replace(jobs[0].case, requires=("flax",)))
    mixed = [jobs[n] for n in (0, 2, 1, 3)]
    assert order_by_cell(mixed) == [jobs[2], jobs[3], jobs[1], jobs[0]]
