"""Whatever workers tell, and in whatever way they end: every test ends exactly once."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hypothesis import given
from hypothesis import strategies as st

from conformance.errors import InfrastructureError
from conformance.suites.running.seat import Seat
from conformance.suites.running.told import Told
from conformance.suites.running.units import Units, divided
from conformance.suites.running.watch import Ended
from tests.engine.worlds import job, planned

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from conformance.engine.job import Finished, Job

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
    "lost",
)
SUITES = st.lists(st.integers(0, 3), min_size=1, max_size=25)


class Made:
    """A worker that does as it is drawn.

    Args:
        data: Draws.
        names: Tests that its suite has.
        forked: Whether its like costs nothing.
    """

    def __init__(self, data: st.DataObject, names: Sequence[str], *, forked: bool) -> None:
        self.told, self.ended, self.forked = Told(), Ended(), forked
        self._data, self._names = data, names
        self._orders: list[str] = []
        self._over = False

    def send(self, order: Mapping[str, Any]) -> None:
        """Take an order."""
        self._orders += order.get("run", ())
        self._over |= "over" in order

    def events(self) -> Iterator[Mapping[str, Any]]:
        """Tell what is drawn, then end as is drawn."""
        start = self._data.draw(st.sampled_from(STARTS))
        self.ended = Ended(exit=1, err="no")
        for event in self._begun(start):
            self.told.take(event)
            yield event
        if start == "ready":
            yield from self._run()
        elif start == "stranger":  # it runs what nobody asked for, and is never ready
            yield {"event": "begin", "test": self._names[0]}
            yield {"event": "end", "test": self._names[0], "outcome": "passed"}
            self.ended = Ended(status=0)

    def _begun(self, start: str) -> Iterator[Mapping[str, Any]]:
        if start != "silent":
            yield {"event": "hello", "versions": {}}
        if start not in {"silent", "hello"}:
            yield {"event": "collected", "tests": [(name, "", 0, "") for name in self._names]}
        if start == "ready":
            yield {"event": "ready", "forks": False, "why": "", "warnings": []}

    def _run(self) -> Iterator[Mapping[str, Any]]:
        while self._orders:
            assert len(self._orders) > 1 or self._over, "it would wait for ever"
            test = self._orders.pop(0)
            fate = self._data.draw(st.sampled_from(FATES))
            if fate == "unknown":
                yield {"event": "unknown", "tests": [test]}
                continue
            yield {"event": "begin", "test": test}
            cut = fate if fate in {"timeout", "memory"} else ""
            if cut or fate in {"crash", "exit"}:
                ends = {"exit": 3} if fate == "exit" else {"signal": 11}
                self.ended = Ended(cut=cut, exit=ends.get("exit"), signal=ends.get("signal"))
                return
            said = {"message": "x", "type": "X", "where": "", "reason": "", "text": "", "out": ""}
            yield {"event": "end", "test": test, "outcome": fate, "err": "", **said}
        self.ended = Ended(status=0)


def run_all(seats: Sequence[Seat], units: Units) -> Iterator[Finished]:
    """Run seats side by side, and yield what ends in any of them."""
    running = [(seat, seat.run()) for seat in seats]
    while running:
        for seat, ends in list(running):
            try:
                yield next(ends)
            except (StopIteration, InfrastructureError):
                running.remove((seat, ends))
                units.give_back(seat.left)


@given(SUITES, st.integers(1, 3), st.booleans(), st.data())
def test_every_test_ends_once(
    files: list[int],
    workers: int,
    forked: bool,
    data: st.DataObject,
) -> None:
    """Or is left for the executor, which tells of it: no event makes it disappear or come twice."""
    jobs = [
        job(Path("/p") / str(file), f"f{file}.py::test_a[{number}]", PLACE)
        for number, file in enumerate(sorted(files))
    ]
    names = [one.case.name for one in jobs]
    bounds = dict.fromkeys(names, data.draw(st.sampled_from(["function", "module"])))
    units = Units(divided(jobs, workers, bounds, lambda _: 1.0))
    there = [name for name in names if data.draw(st.integers(0, 9))] or names[:1]

    def worker(mine: Sequence[Job]) -> tuple[Made, Sequence[Job]]:
        return Made(data, there, forked=forked), (*mine, *units.left)

    ended = list(run_all([Seat(units, worker) for _ in range(workers)], units))
    left = units.remove(lambda _: True)
    counts = Counter(one.case.id for one in [*(end.job for end in ended), *left])
    assert counts == dict.fromkeys((one.case.id for one in jobs), 1)
