"""One worker after another that runs tests of a cell: what ends one ends one test."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol

from conformance.engine.job import Finished
from conformance.errors import InfrastructureError
from conformance.model.outcome import Outcome, Stage
from conformance.suites.running.endings import (
    failed_session,
    failure_of,
    finished,
    gone_again,
    killed,
    not_collected,
    said,
)
from conformance.suites.running.units import told_at_once
from conformance.suites.running.watch import LOST

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence

    from conformance.engine.job import Job
    from conformance.suites.running.told import Told
    from conformance.suites.running.units import Units
    from conformance.suites.running.watch import Ended, Event

IN_A_ROW: Final = 8
"""Workers that may end at their first test, all alike, before the rest of its file is given up."""


class Worker(Protocol):
    """What runs tests: a session of pytest, or what one forks."""

    ended: Ended

    @property
    def forked(self) -> bool:
        """Whether another one costs next to nothing."""
        ...

    @property
    def told(self) -> Told:
        """What was told before any test."""
        ...

    def events(self) -> Iterator[Event]:
        """Run it, and yield what it tells."""
        ...

    def send(self, order: Mapping[str, Any]) -> None:
        """Give it an order."""
        ...


class Seat:
    """Runs tests of one cell until nobody is left to take.

    Args:
        units: The tests of the cell, which others take from, too.
        worker: Makes a worker; it is told which tests were taken already, and returns those that
            the worker must have, if the suite does.
        greet: Is told what a worker is; may raise an error that ends all.
        known: Names of the tests that were collected in the cell before.
    """

    def __init__(
        self,
        units: Units,
        worker: Callable[[Sequence[Job]], tuple[Worker, Sequence[Job]]],
        greet: Callable[[Worker], None] = lambda _: None,
        known: Container[str] = frozenset(),
    ) -> None:
        self._units, self._worker, self._greet, self._known = units, worker, greet, known
        self._mine: dict[str, Job] = {}
        self._row: list[str] = []
        self._wanted: Sequence[Job] = ()
        self.stopped = False

    @property
    def left(self) -> tuple[Job, ...]:
        """Tests that were taken here and did not end."""
        return tuple(self._mine.values())

    def run(self) -> Iterator[Finished]:
        """Run tests, and yield each as it ends; those that are left when it is stopped are not.

        Raises:
            InfrastructureError: If a session does not even start, or is none of the cell's.
        """
        while (self._mine or self._units) and not self.stopped:
            worker, self._wanted = self._worker(self.left)
            heard = _Heard(worker)
            for one in self._with(heard):
                heard.ended += 1
                yield one
            if worker.ended.cut != LOST and not heard.ended and not self.stopped:
                yield from self._in_vain(heard)

    def _in_vain(self, heard: _Heard) -> Iterator[Finished]:
        """Yield what the next worker would not get on with either, for one that ended nothing."""
        if heard.worker.told.forks is None:
            others = self._units.remove(lambda _: True)
            yield from self._failed(heard.worker.ended, self._own(), others)
        elif self._mine:
            yield from self._failed(heard.worker.ended, self._own())
        else:  # what there is it cannot run: who has taken it knows it
            self.stopped = True

    def _with(self, heard: _Heard) -> Iterator[Finished]:
        """Yield what ends with a worker."""
        worker = heard.worker
        if worker.told.forks is not None:
            yield from self._ready(heard)
        for event in worker.events():
            match event:
                case {"event": "ready"}:
                    yield from self._ready(heard)
                case {"event": "begin", "test": test}:
                    heard.begun += 1
                    heard.running = test
                case {"event": "end", "test": test}:
                    heard.running = ""
                    if job := self._taken(test):
                        self._row = []
                        yield finished(job, event)
                    self._feed(heard)
                case {"event": "unknown", "tests": tests}:  # something else stands in their place
                    for job in filter(None, map(self._taken, tests)):
                        yield finished(job, {"outcome": "unknown"})
                    self._feed(heard)
                case _:
                    pass
        yield from self._ended(worker, heard)

    def _taken(self, test: str) -> Job | None:
        """Return a test that ended; a suite with a loop of its own runs what nobody asked for."""
        if test in self._mine:
            return self._mine.pop(test)
        removed = self._units.remove(lambda job: job.case.name == test)
        return removed[0] if removed else None

    def _ready(self, heard: _Heard) -> Iterator[Finished]:
        """Take that a worker can run tests: those that it does not know are none of the suite's."""
        self._greet(heard.worker)
        heard.to_be_told = list(self._mine.values())
        yield from self._not_collected(heard)
        self._feed(heard)

    def _feed(self, heard: _Heard) -> None:
        """Hand out tests before the worker has none left but one, which waits for the next."""
        while not heard.over and heard.told_of(self._mine) < 2:  # noqa: PLR2004
            if not heard.to_be_told:
                names = heard.worker.told.names
                unit = self._units.take(names.__contains__)
                if unit is None:
                    heard.worker.send({"over": True})
                    heard.over = True
                    return
                self._mine |= {job.case.name: job for job in unit}
                heard.to_be_told = unit
            number = told_at_once(heard.to_be_told)
            now, heard.to_be_told = heard.to_be_told[:number], heard.to_be_told[number:]
            heard.worker.send({"run": [job.case.name for job in now]})

    def _ended(self, worker: Worker, heard: _Heard) -> Iterator[Finished]:
        """Yield what the end of a worker says of tests that are left."""
        ended = worker.ended
        if ended.cut == "interrupt":
            self.stopped = True
        elif worker.told.versions is None:
            said_ = ended.err.strip()[-2000:] or f"status {ended.exit}"
            raise InfrastructureError(f"pytest does not start; it said: {said_}")
        elif failure_of(ended)[0] is Outcome.UNSUPPORTED or worker.told.collected is None:
            self._greet(worker)  # what is none of the cell's has failed for that
            yield from self._failed(ended, self._own(), self._units.remove(lambda _: True))
        elif heard.running in self._mine:
            yield from self._killed(worker, heard)
        else:
            yield from self._not_collected(heard)

    def _failed(self, ended: Ended, *jobs: Iterable[Job]) -> Iterator[Finished]:
        """Yield what is left, for a session that got nowhere."""
        yield from (failed_session(job, ended) for own in jobs for job in own)

    def _own(self) -> list[Job]:
        own, self._mine = list(self._mine.values()), {}
        return own

    def _all(self, which: Callable[[Job], bool]) -> Iterable[Job]:
        """Remove tests, and return them: also those that nobody has taken."""
        own = [job for job in self._mine.values() if which(job)]
        for job in own:
            del self._mine[job.case.name]
        return [*own, *self._units.remove(which)]

    def _killed(self, worker: Worker, heard: _Heard) -> Iterator[Finished]:
        """Yield the test that took its worker with it, and those that are given up for that."""
        first, cut = heard.begun == 1, worker.ended.cut
        if cut == LOST or (cut == "memory" and not first):
            return  # by others, it seems: it is tried again in a worker of its own
        job = self._mine.pop(heard.running)
        end = killed(job, worker.ended)
        yield end
        how = "" if end.error is None else end.error.signature
        self._row = [*self._row, how] if first and {how}.issuperset(self._row) else [how]
        cheap = worker.forked and cut != "timeout"
        if len(self._row) >= IN_A_ROW and not cheap:
            yield from self._given_up(job)
            self._row = []

    def _given_up(self, last: Job) -> Iterator[Finished]:
        """Yield the rest of a file whose tests all end their workers, as it seems."""
        why = (
            f"{IN_A_ROW} sessions in a row ended at their first test, the last at "
            f"{last.case.name}: the rest of its file was not tried"
        )
        for job in self._all(lambda job: job.case.file == last.case.file):
            yield Finished(
                job=job, outcome=Outcome.NOT_RUN, stage=Stage.EXECUTE, error=said("not run", why)
            )

    def _not_collected(self, heard: _Heard) -> Iterator[Finished]:
        """Yield the tests that are not there, or cannot be collected."""
        told = heard.worker.told
        gone = {job.case.name for job in self._wanted if job.case.name not in told.names}
        self._wanted = ()
        for job in self._all(lambda job: job.case.name in gone) if gone else ():
            name = job.case.name
            problem = next((one for one in told.problems if one.covers(name)), None)
            if problem is None and "::" not in name:  # a module that could not be collected
                yield Finished(job=job, outcome=Outcome.OK, stage=Stage.IMPORT)
            elif problem is None and name in self._known:
                yield gone_again(job)
            else:
                yield not_collected(job, problem)


class _Heard:
    """What became of a worker so far."""

    def __init__(self, worker: Worker) -> None:
        self.worker = worker
        self.begun = 0
        self.ended = 0
        self.running = ""
        self.over = False
        self.to_be_told: list[Job] = []

    def told_of(self, mine: Mapping[str, Job]) -> int:
        """Return how many tests it was told of that did not end."""
        return len(mine) - len(self.to_be_told)
