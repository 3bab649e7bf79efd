"""Units of jobs that slots take."""

from __future__ import annotations

from pathlib import Path

from conformance.engine.scheduler import JobUnits
from tests.engine.worlds import job, planned


def test_returned_jobs_are_taken_next() -> None:
    """Before all others, by any slot."""
    place = planned("0.6.0")
    jobs = [job(Path("/p"), f"f{number}.py::test_a", place) for number in range(3)]
    units = JobUnits([[one] for one in jobs])
    first = units.take()
    assert first == [jobs[0]]
    units.give_back(first)
    assert units.jobs == tuple(jobs)
    assert [units.take() for _ in range(4)] == [*([one] for one in jobs), None]
    units.give_back([])
    assert not units
