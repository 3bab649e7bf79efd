"""Collecting a suite in several cells at once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Event
from typing import TYPE_CHECKING

from conformance.errors import ConformanceError, InfrastructureError
from conformance.suites.cells import check_identity
from conformance.suites.collection import Collection, Problem, Test, problem_of
from conformance.suites.endings import failure_of
from conformance.suites.executor import arguments
from conformance.suites.session import Launch, Session
from conformance.suites.suite import MEMORY

if TYPE_CHECKING:
    from collections.abc import Sequence

    from conformance.cells.accelerators import Turns
    from conformance.engine.job import PlannedCell
    from conformance.suites.cells import Place, SuiteCells
    from conformance.suites.kept import Collections
    from conformance.suites.suite import Suite


@dataclass(frozen=True, kw_only=True)
class Collector:
    """Collects a suite in cells.

    Attributes:
        suite: The suite.
        cells: Provides environments.
        collections: What was collected before.
        slots: Sessions at the same time.
        turns: Whose turn it is on the accelerators of this host.
    """

    suite: Suite
    cells: SuiteCells
    collections: Collections
    slots: int
    turns: Turns

    def collect(self, planned: Sequence[PlannedCell]) -> list[Collection]:
        """Return what is collected in each cell, from before where nothing has changed.

        Args:
            planned: The cells.

        Raises:
            InfrastructureError: If the disk refuses.
        """
        stopped = Event()

        def look(one: PlannedCell) -> Collection:
            known = self.collections.known(self.suite, one)
            return self._collected(one, stopped) if known is None else known

        with ThreadPoolExecutor(self.slots) as pool:
            try:
                return list(pool.map(look, planned))
            except BaseException:
                stopped.set()
                raise

    def _collected(self, planned: PlannedCell, stopped: Event) -> Collection:
        def go_on() -> None:
            if stopped.is_set():
                raise InfrastructureError("the run was interrupted")

        try:
            with (
                self.turns.of(planned.cell.place, go_on),
                self.cells.provided(planned) as place,
            ):
                found = self._session(planned, place, stopped)
        except ConformanceError as error:  # its jobs say so, too
            return Collection(failure=str(error), infra=True)
        self.collections.keep(self.suite, planned, found)
        return found

    def _session(self, planned: PlannedCell, place: Place, stopped: Event) -> Collection:
        known = arguments(Collection())
        session = Session(
            Launch(
                python=place.python,
                environment=place.variables,
                arguments=[
                    "--collect-only",
                    "-qq",
                    *self.suite.arguments,
                    *known,
                    *self.suite.paths,
                ],
                tests=None,
                timeout=self.suite.timeout,
                memory=MEMORY,
            ),
            stopped.is_set,
        )
        problems: list[Problem] = []
        found: Collection | None = None
        for event in session.events():
            match event:
                case {"event": "hello", "versions": versions}:
                    check_identity(planned, versions)
                case {"event": "broken" | "skipped"}:
                    problems.append(problem_of(event))
                case {"event": "collected", "root": root, "ini": ini, "tests": tests}:
                    named = (Test(name=name, file=file, line=line) for name, file, line in tests)
                    found = Collection(
                        root=root, ini=ini, tests=tuple(named), problems=tuple(problems)
                    )
                case _:
                    pass
        if found is not None:
            return found
        _, error = failure_of(session.ended)
        return Collection(failure=f"{error.type}: {error.message}")
