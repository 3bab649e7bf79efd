"""Bisection: both ends, what tells them apart, where that changes, and all once more."""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from conformance.engine.comparing import Side
from conformance.errors import InfrastructureError
from conformance.model.outcome import Outcome
from conformance.triage.bisect.points import RESTART
from conformance.triage.bisect.search import changes, wanted
from conformance.triage.questions.figures import MARGIN, between
from conformance.triage.questions.predicate import SILENT, Ends
from conformance.triage.questions.question import Seen, chosen
from conformance.triage.questions.state import Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from conformance.engine.blobs import BlobStore
    from conformance.engine.job import PlannedCell
    from conformance.engine.rundir import Results
    from conformance.judge.tolerance import Tolerance
    from conformance.model.record import Record
    from conformance.triage.bisect.points import Points
    from conformance.triage.bisect.prober import Prober
    from conformance.triage.bisect.search import Change
    from conformance.triage.questions.figures import Figure
    from conformance.triage.questions.question import Question
    from conformance.triage.questions.state import State

SLOW: Final = 5.0
"""Seconds from which a probe is worth being made before it is known that it is needed."""
RECOUNTS: Final = 3
"""Probes more of a point that does not show the same twice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What was found out of one point.

    Attributes:
        point: Number of the point.
        samples: What came of each probe of it; one, but where a figure is measured.
        state: What they say.
        said: The same in words.
        again: Whether it had been found out before.
        replayed: Whether it was known from the log.
    """

    point: int
    samples: Sequence[Record]
    state: State
    said: str
    again: bool = False
    replayed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a bisection found.

    Attributes:
        points: The points, in order.
        labels: What they are called.
        ends: Numbers of the good and of the bad end.
        question: What was asked.
        steps: What was found out, in the order it was.
        states: State of each probed point.
        changes: Every change that was found, in order.
        main: The change that ends in what the bad end shows, nearest to the good end.
        flaky: States by how often they were seen, of points that do not show the same twice.
    """

    points: Sequence[PlannedCell]
    labels: Sequence[str]
    ends: tuple[int, int]
    question: Question
    steps: Sequence[Step]
    states: dict[int, State]
    changes: Sequence[Change]
    main: Change
    flaky: dict[int, Counter[State]]

    @property
    def reverse(self) -> bool:
        """Whether the good end is the newer one."""
        return self.ends[0] > self.ends[1]

    @property
    def last_good(self) -> int:
        """The good point nearest to the change: before it, or after it where a fix is sought."""
        good = sorted(n for n, state in self.states.items() if state.kind is Kind.GOOD)
        if self.reverse:
            return next(n for n in good if n >= self.main.after)
        return next(n for n in reversed(good) if n <= self.main.before)

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

    @property
    def confirmed(self) -> bool:
        """Whether both sides of the change showed the same twice."""
        return not self.flaky


@dataclass(slots=True, kw_only=True)
class Bisection:
    """A bisection under way.

    Attributes:
        points: Cells along the axis, in order; the ends are the first and the last.
        reverse: Whether the good end is the last.
        prober: Tries the target.
        blobs: Where artifacts are.
        log: Gets every record before it counts.
        known: Records of an earlier search with the same question.
        tolerance: How far values may differ.
        when: What `--when` says, empty for what tells the ends apart.
        fact: What `--fact` says, the name of one.
        figure: What is measured, if that is the question.
        width: Probes at the same time.
        progress: Called with each step.
    """

    points: Points
    reverse: bool
    prober: Prober
    blobs: BlobStore
    log: Results
    known: Iterable[Record]
    tolerance: Tolerance
    when: str = ""
    fact: str = ""
    figure: Figure | None = None
    width: int
    progress: Callable[[Step], None]
    _steps: list[Step] = field(default_factory=list)
    _states: dict[int, State] = field(default_factory=dict)
    _samples: dict[int, list[Side]] = field(default_factory=dict)
    _past: dict[int, deque[Record]] = field(default_factory=dict)
    _from_log: set[int] = field(default_factory=set)

    def run(self) -> Answer:
        """Search.

        Returns:
            The answer.

        Raises:
            EndsError: If nothing tells the ends apart, or an end says nothing.
            UsageError: If there is no such fact.
            InfrastructureError: If an end cannot be tried now, or the disk refuses.
        """
        last = len(self.points) - 1
        good, bad = (last, 0) if self.reverse else (0, last)
        self._replay()
        question = self._question(good, bad)
        self._decide(question, (good, bad))
        ends = (self._samples[0], self._samples[last])
        slow = max(one.record.seconds.get("job", 0.0) for end in ends for one in end) >= SLOW
        while points := wanted(self._states, self.width, eager=slow):
            self._decide(question, points)
        found = changes(self._states)
        main = self._main(found)
        return Answer(
            points=self.points, labels=self.points.labels, ends=(good, bad), question=question,
            steps=self._steps, states=self._states, changes=found, main=main,
            flaky=self._confirm(question, main),
        )  # fmt: skip

    def _question(self, good: int, bad: int) -> Question:
        """Try both ends, and return what tells them apart."""
        names = (self._label(good), self._label(bad))
        if self.figure is None:
            self._probe(sorted((good, bad)))
            self._refuse_faults(good, bad)
            ends = Ends(
                good=self._samples[good][0], bad=self._samples[bad][0], names=names,
                tolerance=self.tolerance,
            )  # fmt: skip
            return Seen(chosen(ends, self.when, self.fact))
        question = None
        while question is None:
            # In turns: what else the machine does falls on both.
            self._probe((good, bad))
            self._refuse_faults(good, bad)
            question = between(self.figure, self._samples[good], self._samples[bad], names)
        return question

    def _refuse_faults(self, *ends: int) -> None:
        """Refuse an end that could not be tried: what stood in the way may be gone next time."""
        for end in ends:
            record = self._samples[end][-1].record
            if record.outcome is Outcome.INFRA:
                said = record.error.message if record.error else record.outcome
                raise InfrastructureError(f"{self.points.labels[end]}: {said}; {RESTART}")

    def _main(self, found: Sequence[Change]) -> Change:
        """Return the change into the bad end's state that is nearest to the good end."""
        bad = [
            change
            for change in found
            if self._states[change.before if self.reverse else change.after].kind is Kind.BAD
        ]
        return bad[-1] if self.reverse else bad[0]

    def _confirm(self, question: Question, main: Change) -> dict[int, Counter[State]]:
        """Ask both sides of the change once more; count what does not show the same twice."""
        unsure: dict[int, Counter[State]] = {}
        for point, state in self._decide(question, (main.before, main.after), again=True).items():
            if state != self._states[point]:
                unsure[point] = Counter([self._states[point], state])
        for _ in range(RECOUNTS if unsure else 0):
            for point, state in self._decide(question, list(unsure), again=True).items():
                unsure[point][state] += 1
        return unsure

    def _decide(
        self, question: Question, points: Sequence[int], *, again: bool = False
    ) -> dict[int, State]:
        """Ask some points, as often as it takes; what was seen before counts unless `again`."""
        if again:
            for point in points:
                self._samples.pop(point, None)
        states: dict[int, State] = {}
        while True:
            for point in points:
                samples = self._samples.get(point, [])
                if point in states or not samples:
                    continue
                if (state := question.state(samples)) is not None:
                    states[point] = state
                    self._take(question, point, state, again=again)
            if not (undecided := [point for point in points if point not in states]):
                return states
            self._probe(undecided, again=again)

    def _take(self, question: Question, point: int, state: State, *, again: bool) -> None:
        """Take in what is known of a point now."""
        samples = self._samples[point]
        if not again:
            self._states[point] = state
        step = Step(
            point=point,
            samples=[side.record for side in samples],
            state=state,
            said=question.said(samples),
            again=again,
            replayed=point in self._from_log,
        )
        self._steps.append(step)
        self.progress(step)

    def _replay(self) -> None:
        """Take from the log what it says of points that are what they were."""
        for record in self.known:
            point = self.points.places.get(record.cell)
            if point is None or record.outcome in SILENT:
                continue
            if self.points[point].cell.interpreter is not None:
                continue  # an environment of the user's may have changed since
            if record.cell_hash == self.points[point].cell_hash != "":
                self._past.setdefault(point, deque()).append(record)

    def _probe(self, points: Sequence[int], *, again: bool = False) -> None:
        """Try the target at some points; each record is in the log before it counts."""
        cells = []
        for point in points:
            for _ in range(1 if self.figure is None else MARGIN):
                if not again and self._past.get(point):
                    self._from_log.add(point)
                    self._add(point, self._past[point].popleft())
                else:
                    cells.append(self.points[point])
        places = {self.points[point].cell.id: point for point in points}
        # A figure is another one where the result is kept from before.
        for record in self.prober.probe(cells, again=again or self.figure is not None):
            self.log.append(record)
            self._from_log.discard(places[record.cell])
            self._add(places[record.cell], record)

    def _add(self, point: int, record: Record) -> None:
        self._samples.setdefault(point, []).append(self._side(record))

    def _side(self, record: Record) -> Side:
        return Side(record, self.blobs)

    def _label(self, point: int) -> str:
        return self.points[point].cell.id
