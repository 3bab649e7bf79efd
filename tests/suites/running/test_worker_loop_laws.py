"""Every test ends exactly once, for any messages and any ends of sessions."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from conformance.engine.scheduler import JobUnits
from conformance.engine.workers.messages import JobEnd
from conformance.errors import InfrastructureError
from conformance.suites.inside.session_server import LOST
from conformance.suites.running.collection import SessionInfo, TestReport
from conformance.suites.running.executor import divide_tests
from tests.engine.worlds import job, planned
from tests.suites.trials import loop_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from conformance.engine.job import FinishedJob, Job
    from conformance.suites.running.worker_loop import WorkerLoop

PLACE = planned("0.6.0")
STARTS = ("ready", "ready", "ready", "ready", "silent", "hello", "collected", "stranger")
FATES = (
    *("passed",) * 9,
    "failed",
    "skipped",
    "left",
    "crash",
    "timeout",
    "memory",
    "exit",
    LOST,
)
SUITES = st.lists(st.integers(0, 3), min_size=1, max_size=25)


class DrawnSession:
    """A session whose behaviour is drawn by Hypothesis.

    Args:
        data: Draws.
        names: Tests that its suite has.
        forks: Whether it forks workers.
    """

    def __init__(self, data: st.DataObject, names: Sequence[str], *, forks: bool) -> None:
        self._data, self.following = data, ""
        self.info = SessionInfo({})
        start = data.draw(st.sampled_from(STARTS))
        if start == "silent":
            raise InfrastructureError("no")
        self.info.end = JobEnd(exit=1)
        if start != "hello":
            self.info.take({"collected": {"tests": [{"name": name} for name in names]}})
        if start == "ready":
            self.info.take({"ready": {"forks": forks}})
        elif start == "stranger":  # it runs what nobody asked for, and is never ready
            self.info.take({"begin": names[0]})
            if data.draw(st.booleans()):
                self.info.take({"end": {"test": names[0], "outcome": "passed"}})

    def covers(self, _: Job) -> bool:
        """It collects all files."""
        return True

    def run(self, test: str, following: str, share: str) -> tuple[TestReport | None, JobEnd]:
        """End as is drawn."""
        assert self.following in {"", test} or self.info.forks, "pytest has kept its fixtures"
        self.following = following
        fate = self._data.draw(st.sampled_from(FATES))
        report = TestReport(test=test, outcome=fate)
        if fate in {"timeout", "memory", LOST}:
            return None, JobEnd(ended=fate, signal=9)
        if fate in {"crash", "exit"}:
            return None, JobEnd(exit=3) if fate == "exit" else JobEnd(signal=11)
        return report, JobEnd(exit=2 if fate == "left" else 0)


class DrawnPool:
    """Sessions as they are drawn.

    Args:
        begin: Makes one.
    """

    def __init__(self, begin: Callable[[], DrawnSession]) -> None:
        self._begin = begin
        self.test_names = frozenset[str]()
        self.verdicts: dict[str, Callable[[Job], FinishedJob]] = {}
        self.abandoned_files: dict[object, str] = {}
        self.stopped = False

    def get_session(self, place: object, wanted: Iterable[Job]) -> DrawnSession:
        """Return a new one."""
        return self._begin()

    def drop(self, session: DrawnSession) -> None:
        """Forget it."""


def run_all(loops: Sequence[WorkerLoop], units: JobUnits) -> Iterator[FinishedJob]:
    """Run loops side by side, and yield what ends in any of them."""
    running = [(loop, loop.run()) for loop in loops]
    while running:
        for loop, ends in list(running):
            try:
                yield next(ends)
            except (StopIteration, InfrastructureError):
                running.remove((loop, ends))
                units.give_back(loop.unfinished_jobs)


@given(SUITES, st.integers(1, 3), st.booleans(), st.data())
def test_every_test_ends_once(
    files: list[int],
    workers: int,
    forked: bool,
    data: st.DataObject,
) -> None:
    """Or is given back to the executor, which reports it."""
    jobs = [
        job(Path("/p") / str(file), f"f{file}.py::test_a[{number}]", PLACE)
        for number, file in enumerate(sorted(files))
    ]
    names = [one.case.name for one in jobs]
    bounds = dict.fromkeys(names, data.draw(st.sampled_from(["function", "module"])))
    units = JobUnits(divide_tests(jobs, workers, bounds, lambda _: 1.0))
    there = [name for name in names if data.draw(st.integers(0, 9))] or names[:1]

    pool = DrawnPool(lambda: DrawnSession(data, there, forks=forked))
    loops = [loop_of(pool, units, str(number)) for number in range(workers)]
    ended = list(run_all(loops, units))
    counts = Counter(one.case.id for one in [*(end.job for end in ended), *units.jobs])
    assert counts == dict.fromkeys((one.case.id for one in jobs), 1)
