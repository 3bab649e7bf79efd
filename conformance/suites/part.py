"""Tests of one cell, run to the last: a new session for what a test that ended its own left."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from conformance.engine.job import Finished
from conformance.errors import InfrastructureError
from conformance.model.outcome import Outcome, Stage
from conformance.suites.collection import Problem, problem_of
from conformance.suites.endings import (
    failed_session,
    failure_of,
    finished,
    killed,
    not_collected,
    said,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from conformance.engine.job import Job
    from conformance.suites.session import Ended, Event

IN_A_ROW: Final = 8
"""Sessions that may end at their first test, all alike, before the rest of its file is given up."""


class Runs(Protocol):
    """A session, as `conformance.suites.session.Session` is one."""

    ended: Ended

    def events(self) -> Iterator[Event]:
        """Run it, and yield what it tells."""
        ...


class Part:
    """Tests of one cell that sessions run one after another.

    Args:
        jobs: The tests, in order.
        begin: Makes a session that runs some tests.
        greet: Is told what the process of a session says it is; may raise an error that ends all.
    """

    def __init__(
        self,
        jobs: Sequence[Job],
        begin: Callable[[Sequence[Job]], Runs],
        greet: Callable[[Mapping[str, str]], None] = lambda _: None,
    ) -> None:
        self._left = {job.case.name: job for job in jobs}
        self._begin, self._greet = begin, greet
        self._row: list[str] = []
        self.stopped = False

    @property
    def left(self) -> tuple[Job, ...]:
        """Tests that did not end yet."""
        return tuple(self._left.values())

    def run(self) -> Iterator[Finished]:
        """Run them all, and yield each as it ends; those that are left when it is stopped are not.

        Raises:
            InfrastructureError: If a session does not even start, or is none of the cell's.
        """
        while self._left and not self.stopped:
            session = self._begin(self.left)
            heard, before = _Heard(), len(self._left)
            for event in session.events():
                heard.take(event)
                if event["event"] == "hello":
                    self._greet(event["versions"])
                elif event["event"] == "end" and (job := self._left.pop(event["test"], None)):
                    self._row = []
                    yield finished(job, event)
            yield from self._ended(session.ended, heard)
            if len(self._left) == before and not self.stopped:  # nor would it get on the next time
                yield from self._failed(session.ended)

    def _ended(self, ended: Ended, heard: _Heard) -> Iterator[Finished]:
        """Yield what the end of a session says of tests that are left."""
        if ended.cut == "interrupt":
            self.stopped = True
        elif not heard.greeted:
            said_ = ended.err.strip()[-2000:] or f"status {ended.exit}"
            raise InfrastructureError(f"pytest does not start; it said: {said_}")
        elif failure_of(ended)[0] is Outcome.UNSUPPORTED or heard.collected is None:
            yield from self._failed(ended)
        elif heard.running in self._left:
            yield from self._killed(ended, heard)
        else:
            yield from self._not_collected(heard)

    def _failed(self, ended: Ended) -> Iterator[Finished]:
        """Yield all that is left, for a session that got nowhere."""
        yield from (failed_session(self._left.pop(name), ended) for name in list(self._left))

    def _killed(self, ended: Ended, heard: _Heard) -> Iterator[Finished]:
        """Yield the test that took its session with it, and those that are given up for that."""
        first = heard.begun == 1
        if ended.cut == "memory" and not first:
            return  # others filled it: it is tried again in a session of its own
        job = self._left.pop(heard.running)
        end = killed(job, ended)
        yield end
        how = "" if end.error is None else end.error.signature
        self._row = [*self._row, how] if first and {how}.issuperset(self._row) else [how]
        if len(self._row) >= IN_A_ROW:
            yield from self._given_up(job)
            self._row = []

    def _given_up(self, last: Job) -> Iterator[Finished]:
        """Yield the rest of a file whose tests all end their sessions, as it seems."""
        why = (
            f"{IN_A_ROW} sessions in a row ended at their first test, the last at "
            f"{last.case.name}: the rest of its file was not tried"
        )
        for job in self.left:
            if job.case.file == last.case.file:
                yield Finished(
                    job=self._left.pop(job.case.name), outcome=Outcome.NOT_RUN,
                    stage=Stage.EXECUTE, error=said("not run", why),
                )  # fmt: skip

    def _not_collected(self, heard: _Heard) -> Iterator[Finished]:
        """Yield the tests that are not there, or cannot be collected."""
        for name in [name for name in self._left if name not in (heard.collected or ())]:
            problem = next((one for one in heard.problems if one.covers(name)), None)
            job = self._left.pop(name)
            if problem is None and "::" not in name:  # a module that could not be collected
                yield Finished(job=job, outcome=Outcome.OK, stage=Stage.IMPORT)
            else:
                yield not_collected(job, problem)


class _Heard:
    """What a session told so far."""

    def __init__(self) -> None:
        self.greeted = False
        self.collected: set[str] | None = None
        self.problems: list[Problem] = []
        self.begun = 0
        self.running = ""

    def take(self, event: Event) -> None:
        match event:
            case {"event": "hello"}:
                self.greeted = True
            case {"event": "collected", "tests": tests}:
                self.collected = {name for name, _, _ in tests}
            case {"event": "broken" | "skipped"}:
                self.problems.append(problem_of(event))
            case {"event": "begin", "test": test}:
                self.begun += 1
                self.running = test
            case {"event": "end"}:
                self.running = ""
            case _:
                pass
