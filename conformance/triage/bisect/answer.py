"""The answer of a bisection: its steps, the state of each point, and the main change. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from conformance.model.outcome import Outcome
from conformance.triage.bisect.search import last_good
from conformance.triage.questions.state import Kind

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Mapping, Sequence

    from conformance.engine.job import PlannedCell
    from conformance.model.record import Record
    from conformance.triage.bisect.flakiness import Resampled
    from conformance.triage.bisect.search import Change
    from conformance.triage.questions.question import Question
    from conformance.triage.questions.state import State


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """The result of one point.

    Attributes:
        point: Number of the point.
        samples: What came of each probe of it; one, but where a figure is measured.
        state: What they say; None while all points are tried, before there is a question.
        said: The same in words.
        again: Whether it had been found out before.
        replayed: Whether it was known from the log.
    """

    point: int
    samples: Sequence[Record]
    state: State | None
    said: str
    again: bool = False
    replayed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The answer of a bisection.

    Attributes:
        points: The points, in order.
        labels: What they are called.
        ends: Numbers of the good and of the bad end.
        question: What was asked.
        steps: What was found out, in the order it was.
        states: State of each probed point.
        changes: Every change that was found, in order.
        also: Changes of what the ends differ in, where a point between them is worse than that.
        main: The change that ends in what the bad end shows, nearest to the good end.
        flaky: States by how often they were seen, of points that do not show the same twice.
        resampled: How often the last good point was tried, because the first bad one is flaky.
        versions: Versions of all packages before and after the change.
        turned: Whether the ends were named in the other order: the one called good fails.
    """

    points: Sequence[PlannedCell]
    labels: Sequence[str]
    ends: tuple[int, int]
    question: Question
    steps: Sequence[Step]
    states: dict[int, State]
    changes: Sequence[Change]
    also: Sequence[Change]
    main: Change
    flaky: dict[int, Counter[State]]
    versions: tuple[Mapping[str, str], Mapping[str, str]]
    resampled: Resampled | None = None
    turned: bool = False

    @property
    def reverse(self) -> bool:
        """Whether the good end is the newer one."""
        return self.ends[0] > self.ends[1]

    @property
    def last_good(self) -> int:
        """The good point nearest to the change: before it, or after it where a fix is sought."""
        return last_good(self.states, self.main, reverse=self.reverse)

    @property
    def first_bad(self) -> int:
        """The bad point at the change."""
        return self.main.before if self.reverse else self.main.after

    @property
    def others(self) -> list[int]:
        """Points between the two that are neither."""
        first, last = sorted((self.last_good, self.first_bad))
        within = range(first + 1, last)
        return [n for n in within if n in self.states and self.states[n].kind is Kind.OTHER]

    def fails(self, point: int) -> bool:
        """Return whether the target failed at a point."""
        return self._first(point).samples[0].outcome is not Outcome.OK

    def said(self, point: int) -> str:
        """Return what was seen at a point first, in words."""
        return self._first(point).said

    def _first(self, point: int) -> Step:
        return next(step for step in self.steps if step.point == point and not step.again)

    @property
    def confirmed(self) -> bool:
        """Whether the two are neighbours, and showed the same twice, or often enough."""
        if self.others:
            return False
        return not self.flaky or (self.resampled is not None and self.resampled.is_enough)

    @property
    def works_nowhere(self) -> bool:
        """Whether the target failed at each point that was tried."""
        tried = (record for step in self.steps for record in step.samples)
        return all(record.outcome is not Outcome.OK for record in tried)
