"""The executor of suites: sessions of pytest on this machine, some at the same time."""

from __future__ import annotations

import threading
from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Any

from conformance.engine.checking import UnsupportedCellError
from conformance.engine.job import Finished
from conformance.engine.slots import in_slots
from conformance.errors import ConformanceError, InfrastructureError
from conformance.model.outcome import Outcome, Stage
from conformance.suites.cells import check_identity
from conformance.suites.endings import said
from conformance.suites.part import Part
from conformance.suites.session import Launch, Session

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence

    from conformance.cells.accelerators import Turns
    from conformance.engine.job import Job, PlannedCell
    from conformance.engine.slots import Tell
    from conformance.suites.cells import Place, SuiteCells
    from conformance.suites.collection import Collection
    from conformance.suites.suite import Suite


class SuiteExecutor:
    """Runs tests of a suite in sessions of pytest.

    Args:
        suite: The suite.
        collection: What was collected somewhere, for where node ids start from.
        cells: Provides environments.
        slots: Sessions at the same time.
        turns: Whose turn it is on the accelerators of this host.
    """

    def __init__(
        self, suite: Suite, collection: Collection, cells: SuiteCells, *, slots: int, turns: Turns
    ) -> None:
        self._suite, self._collection = suite, collection
        self._cells, self._slots, self._turns = cells, slots, turns
        self._identities: dict[str, Mapping[str, Any]] = {}
        self._stopped = threading.Event()

    @property
    def identities(self) -> Mapping[str, Mapping[str, Any]]:
        """What the sessions said they are, by cell id."""
        return self._identities

    def run(self, jobs: Iterable[Job]) -> Generator[Finished]:
        """Run tests and yield each as it ends; see `Executor.run`."""
        self._stopped.clear()
        parts = deque(divided(jobs, self._slots))
        yield from in_slots(
            partial(self._work, parts), min(self._slots, len(parts)), partial(self._abandon, parts)
        )

    def _work(self, parts: deque[list[Job]], tell: Tell) -> None:
        while True:
            try:
                jobs = parts.popleft()
            except IndexError:
                return
            for finished in self._ran(jobs):
                tell(finished)

    def _abandon(self, parts: deque[list[Job]]) -> None:
        parts.clear()
        self._stopped.set()

    def _ran(self, jobs: Sequence[Job]) -> Iterator[Finished]:
        """Run tests of one cell; what cannot be run ends with the reason."""
        planned = jobs[0].planned
        left = jobs
        try:
            with (
                self._turns.of(planned.cell.place, self._go_on),
                self._cells.provided(planned) as place,
            ):
                part = Part(jobs, partial(self._session, place), partial(self._greet, planned))
                try:
                    yield from part.run()
                finally:
                    left = part.left
        except UnsupportedCellError as error:
            yield from _not_run(left, Outcome.UNSUPPORTED, str(error))
        except ConformanceError as error:
            yield from _not_run(left, Outcome.INFRA, str(error))

    def _go_on(self) -> None:
        if self._stopped.is_set():
            raise InfrastructureError("the run was interrupted")

    def _greet(self, planned: PlannedCell, versions: Mapping[str, str]) -> None:
        check_identity(planned, versions)
        self._identities[planned.cell.id] = {"versions": dict(versions)}

    def _session(self, place: Place, jobs: Sequence[Job]) -> Session:
        """Return a session of tests: of the files that they are in, nothing else is collected."""
        files = dict.fromkeys(str(job.case.file.absolute()) for job in jobs)
        return Session(
            Launch(
                python=place.python,
                environment=place.variables,
                arguments=[*self._suite.arguments, *arguments(self._collection), *files],
                tests=[job.case.name for job in jobs],
                timeout=self._suite.timeout,
                memory=jobs[0].case.memory,
            ),
            self._stopped.is_set,
        )


def arguments(collection: Collection) -> list[str]:
    """Return arguments of pytest with which every session is about the same project.

    Args:
        collection: What was collected, empty where that is not known yet.
    """
    known = ["--rootdir", collection.root] if collection.root else []
    known += ["-c", collection.ini] if collection.ini else []
    # One test that fails is no reason to know nothing of the others.
    return [*known, "--continue-on-collection-errors", "--maxfail=0"]


def divided(jobs: Iterable[Job], slots: int) -> list[list[Job]]:
    """Divide tests among sessions: those of one file, and of one cell, stay together.

    Args:
        jobs: The tests.
        slots: Sessions at the same time.

    Returns:
        A part for each cell; more where there are more slots than cells, but on accelerators.
    """
    cells: dict[str, dict[str, list[Job]]] = {}
    for job in jobs:
        files = cells.setdefault(job.planned.cell.id, {})
        files.setdefault(str(job.case.file), []).append(job)
    parts = []
    for files in cells.values():
        first = next(iter(files.values()))[0]
        number = 1 if first.planned.cell.place.real else max(1, slots // len(cells))
        made: list[list[Job]] = [[] for _ in range(min(number, len(files)))]
        for own in sorted(files.values(), key=len, reverse=True):
            min(made, key=len).extend(own)
        parts += made
    return parts


def _not_run(jobs: Iterable[Job], outcome: Outcome, reason: str) -> Iterator[Finished]:
    for job in jobs:
        yield Finished(
            job=job, outcome=outcome, stage=Stage.PROVISION, error=said(str(outcome), reason)
        )
