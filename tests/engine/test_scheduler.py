"""Units of jobs that slots take, and the end of a schedule."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from conformance.engine.job import FinishedJob
from conformance.engine.scheduler import CellQueue, JobUnits, schedule
from conformance.model.outcome import Outcome, Stage
from tests.engine.worlds import job, planned

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conformance.engine.job import PlannedCell


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


@dataclass
class ReturningPool:
    """A pool that gives back what it took once it is interrupted, as that of a suite does."""

    planned: PlannedCell
    stopped: threading.Event = field(default_factory=threading.Event)

    def has_room(self, slots: int) -> bool:
        """Return whether no slot works here."""
        return not slots

    def work(self, units: JobUnits) -> Iterator[FinishedJob]:
        """End the first job; the second takes until the interrupt, and is given back."""
        taken = units.take()
        if taken is None or self.stopped.is_set():
            units.give_back(taken or [])
            return
        yield FinishedJob(job=taken[0], outcome=Outcome.OK, stage=Stage.EXECUTE)
        self.stopped.wait()
        units.give_back(taken)

    def interrupt(self) -> None:
        """Stop."""
        self.stopped.set()

    def close(self) -> None:
        """Close nothing."""


def test_an_abandoned_schedule_ends_although_jobs_are_given_back() -> None:
    """A slot would otherwise take the same jobs again and again."""
    place = planned("0.6.0")
    pool = ReturningPool(place)
    units = JobUnits([[job(Path("/p"), f"f{number}.py::test_a", place)] for number in range(2)])
    finished = schedule([CellQueue(pool, units)], slots=1)
    assert next(finished).outcome is Outcome.OK
    finished.close()
    assert pool.stopped.is_set()
