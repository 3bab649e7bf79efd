"""The executor of suites: workers that run tests on this machine, some at the same time."""

from __future__ import annotations

import threading
from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Any

from conformance.engine.job import Finished
from conformance.engine.slots import in_slots
from conformance.engine.worker_probes import UnsupportedCellError
from conformance.errors import ConformanceError, InfrastructureError
from conformance.model.outcome import Outcome, Stage
from conformance.suites.running.cells import check_identity
from conformance.suites.running.crew import Crew
from conformance.suites.running.endings import said
from conformance.suites.running.launching import launch
from conformance.suites.running.seat import Seat
from conformance.suites.running.session import Session
from conformance.suites.running.units import Units, divided
from conformance.suites.running.waiting import Waiting

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence

    from conformance.cells.accelerators import DeviceLock
    from conformance.engine.job import Job, PlannedCell
    from conformance.engine.slots import Tell
    from conformance.suites.running.cells import Place, SuiteCells
    from conformance.suites.running.collection import Collection
    from conformance.suites.running.kept import Timings
    from conformance.suites.running.seat import Worker
    from conformance.suites.suite import Suite


class SuiteExecutor:
    """Runs tests of a suite.

    Args:
        suite: The suite.
        collection: What was collected somewhere, for where node ids start from.
        cells: Provides environments.
        slots: Workers at the same time.
        turns: Whose turn it is on the accelerators of this host.
        collections: What was collected in each cell.
        waiting: Sessions that have collected it.
        timings: How long tests took before.
    """

    def __init__(
        self,
        suite: Suite,
        collection: Collection,
        cells: SuiteCells,
        *,
        slots: int,
        turns: DeviceLock,
        timings: Timings,
        collections: Sequence[tuple[PlannedCell, Collection]] = (),
        waiting: Waiting | None = None,
    ) -> None:
        self._suite, self._collection, self._cells = suite, collection, cells
        self._slots, self._turns, self._timings = slots, turns, timings
        self._waiting = waiting or Waiting()
        self._bounds = {
            planned.cell.id: {test.name: test.bound for test in one.tests}
            for planned, one in collections
        }
        # A cell in which nothing is run again is what it was.
        self._identities: dict[str, dict[str, Any]] = {
            planned.cell.id: {"versions": dict(planned.versions), **one.told}
            for planned, one in collections
            if one.told
        }
        self._stopped = threading.Event()

    @property
    def identities(self) -> Mapping[str, Mapping[str, Any]]:
        """What the sessions said they are, by cell id."""
        return self._identities

    def run(self, jobs: Iterable[Job]) -> Generator[Finished]:
        """Run tests and yield each as it ends; see `Executor.run`."""
        self._stopped.clear()
        crews = self._crews(jobs)
        seats = deque(crew for crew, number in crews for _ in range(number))
        slots = min(self._slots, max(len(seats), sum(len(crew.units) for crew, _ in crews)))
        try:
            yield from in_slots(
                partial(self._work, seats, [crew for crew, _ in crews]), slots,
                partial(self._abandon, seats),
            )  # fmt: skip
        finally:
            self._waiting.close()
            self._timings.keep()

    def close(self) -> None:
        """End what waits to run tests, where none is to be run after all."""
        self._waiting.close()

    def _crews(self, jobs: Iterable[Job]) -> list[tuple[Crew, int]]:
        """Return the crew of each cell, and how many workers it begins with."""
        cells: dict[str, list[Job]] = {}
        for job in jobs:
            cells.setdefault(job.planned.cell.id, []).append(job)
        crews = []
        for cell, own in cells.items():
            planned = own[0].planned
            number = 1 if planned.cell.place.real else max(1, self._slots // len(cells))
            units = divided(
                own, number, self._bounds.get(cell, {}), self._timings.of,
                intact=not self._suite.divide,
            )  # fmt: skip
            crew = Crew(planned, Units(units), self._waiting.taken(cell), self._stopped.is_set)
            crews.append((crew, min(number, len(units))))
        return crews

    def _work(self, seats: deque[Crew], crews: Sequence[Crew], tell: Tell) -> None:
        while True:
            try:
                crew = seats.popleft()
            except IndexError:
                # Where that costs next to nothing, who has nothing left to do helps.
                helped = next((one for one in crews if one.may_be_helped), None)
                if helped is None or self._stopped.is_set():
                    return
                crew = helped
            for finished in self._ran(crew):
                self._timings.learn(finished)
                tell(finished)

    def _abandon(self, seats: deque[Crew]) -> None:
        seats.clear()
        self._stopped.set()

    def _ran(self, crew: Crew) -> Iterator[Finished]:
        """Run tests of one cell; what cannot be run ends with the reason."""
        if not crew.units:
            return
        failure: tuple[Outcome, str] | None = None
        seat: Seat | None = None
        crew.enter()
        try:
            with (
                self._turns.of(crew.planned.cell.place, self._go_on),
                self._cells.provided(crew.planned) as place,
            ):
                begin = partial(self._session, place)
                seat = Seat(
                    crew.units, partial(crew.worker, begin), partial(self._greet, crew),
                    self._bounds.get(crew.planned.cell.id, {}),
                )  # fmt: skip
                yield from seat.run()
        except UnsupportedCellError as error:
            failure = Outcome.UNSUPPORTED, str(error)
        except ConformanceError as error:
            failure = Outcome.INFRA, str(error)
        finally:
            if seat is not None:
                crew.units.give_back(seat.left)
            last = crew.leave()
        if last and not self._stopped.is_set():
            failure = failure or (Outcome.INFRA, "no worker was left to run it")
            yield from _not_run(crew.units.remove(lambda _: True), *failure)

    def _go_on(self) -> None:
        if self._stopped.is_set():
            raise InfrastructureError("the run was interrupted")

    def _greet(self, crew: Crew, worker: Worker) -> None:
        told, planned = worker.told, crew.planned
        if told.versions is None:
            return
        check_identity(planned, told.versions)
        self._identities[planned.cell.id] = {"versions": dict(told.versions), **told.facts}

    def _session(self, place: Place, jobs: Sequence[Job], *, forks: bool) -> Session:
        """Return a session of tests: of the files that they are in, nothing else is collected."""
        files = dict.fromkeys(str(job.case.file.absolute()) for job in jobs)
        launched = launch(self._suite, place, self._collection, files, forks=forks)
        return Session(launched, self._stopped.is_set)


def _not_run(jobs: Iterable[Job], outcome: Outcome, reason: str) -> Iterator[Finished]:
    for job in jobs:
        yield Finished(
            job=job, outcome=outcome, stage=Stage.PROVISION, error=said(str(outcome), reason)
        )
