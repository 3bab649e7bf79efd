"""Bisection: both ends, what tells them apart, where that changes, and all once more."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from conformance.engine.comparing import Side
from conformance.triage.predicate import SILENT, Ends, chosen, state_of
from conformance.triage.search import changes, wanted
from conformance.triage.state import Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from conformance.engine.blobs import BlobStore
    from conformance.engine.job import PlannedCell
    from conformance.engine.rundir import Results
    from conformance.judge.tolerance import Tolerance
    from conformance.model.record import Record
    from conformance.triage.predicate import Predicate
    from conformance.triage.prober import Prober
    from conformance.triage.search import Change
    from conformance.triage.state import State

SLOW: Final = 5.0
"""Seconds from which a probe is worth being made before it is known that it is needed."""
RECOUNTS: Final = 3
"""Probes more of a point that does not show the same twice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A probe.

    Attributes:
        point: Number of the point.
        record: What came of it.
        state: What that says.
        again: Whether the point had been probed before.
        replayed: Whether it was known from the log.
    """

    point: int
    record: Record
    state: State
    again: bool = False
    replayed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a bisection found.

    Attributes:
        points: The points, in order.
        labels: What they are called.
        ends: Numbers of the good and of the bad end.
        predicate: The question.
        steps: The probes, in the order they were made.
        states: State of each probed point.
        changes: Every change that was found, in order.
        main: The change that ends in what the bad end shows, nearest to the good end.
        flaky: States by how often they were seen, of points that do not show the same twice.
    """

    points: Sequence[PlannedCell]
    labels: Sequence[str]
    ends: tuple[int, int]
    predicate: Predicate
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
        labels: What they are called, e.g. their releases.
        reverse: Whether the good end is the last.
        prober: Tries the target.
        blobs: Where artifacts are.
        log: Gets every record before it counts.
        known: Records of an earlier search with the same question.
        tolerance: How far values may differ.
        when: What `--when` says, empty for what tells the ends apart.
        width: Probes at the same time.
        progress: Called with each step.
    """

    points: Sequence[PlannedCell]
    labels: Sequence[str]
    reverse: bool
    prober: Prober
    blobs: BlobStore
    log: Results
    known: Iterable[Record]
    tolerance: Tolerance
    when: str
    width: int
    progress: Callable[[Step], None]
    _steps: list[Step] = field(default_factory=list)
    _states: dict[int, State] = field(default_factory=dict)

    def run(self) -> Answer:
        """Search.

        Returns:
            The answer.

        Raises:
            EndsError: If nothing tells the ends apart, or an end says nothing.
            InfrastructureError: If the disk refuses.
        """
        last = len(self.points) - 1
        replayed = self._replayed()
        first = {point: replayed[point] for point in (0, last) if point in replayed}
        first |= self._probed([point for point in (0, last) if point not in first])
        good, bad = (last, 0) if self.reverse else (0, last)
        predicate = chosen(
            Ends(
                good=self._side(first[good]),
                bad=self._side(first[bad]),
                names=(self._label(good), self._label(bad)),
                tolerance=self.tolerance,
            ),
            self.when,
        )
        for point in (good, bad):
            self._take(predicate, point, first[point], replayed=point in replayed)
        slow = max(record.seconds.get("job", 0.0) for record in first.values()) >= SLOW
        while points := wanted(self._states, self.width, eager=slow):
            for point in [point for point in points if point in replayed]:
                self._take(predicate, point, replayed[point], replayed=True)
            for point, record in self._probed([p for p in points if p not in replayed]).items():
                self._take(predicate, point, record)
        found = changes(self._states)
        main = self._main(found)
        return Answer(
            points=self.points, labels=self.labels, ends=(good, bad), predicate=predicate,
            steps=self._steps, states=self._states, changes=found, main=main,
            flaky=self._confirm(predicate, main),
        )  # fmt: skip

    def _main(self, found: Sequence[Change]) -> Change:
        """Return the change into the bad end's state that is nearest to the good end."""
        bad = [
            change
            for change in found
            if self._states[change.before if self.reverse else change.after].kind is Kind.BAD
        ]
        return bad[-1] if self.reverse else bad[0]

    def _confirm(self, predicate: Predicate, main: Change) -> dict[int, Counter[State]]:
        """Probe both sides of the change once more; count what does not show the same twice."""
        sides = [main.before, main.after]
        unsure: dict[int, Counter[State]] = {}
        for point, record in self._probed(sides, again=True).items():
            step = self._take(predicate, point, record, again=True)
            if step.state != self._states[point]:
                unsure[point] = Counter([self._states[point], step.state])
        for _ in range(RECOUNTS if unsure else 0):
            for point, record in self._probed(list(unsure), again=True).items():
                unsure[point][self._take(predicate, point, record, again=True).state] += 1
        return unsure

    def _replayed(self) -> dict[int, Record]:
        """Return what the log says of points that are what they were."""
        places = {planned.cell.id: point for point, planned in enumerate(self.points)}
        found: dict[int, Record] = {}
        for record in self.known:
            point = places.get(record.cell)
            if point is None or record.outcome in SILENT:
                continue
            if record.cell_hash == self.points[point].cell_hash != "":
                found.setdefault(point, record)
        return found

    def _probed(self, points: Sequence[int], *, again: bool = False) -> dict[int, Record]:
        """Try the target at some points; each record is in the log before it counts."""
        places = {self.points[point].cell.id: point for point in points}
        found: dict[int, Record] = {}
        cells = [self.points[point] for point in points]
        for record in self.prober.probe(cells, again=again):
            self.log.append(record)
            found[places[record.cell]] = record
        return found

    def _take(
        self,
        predicate: Predicate,
        point: int,
        record: Record,
        *,
        again: bool = False,
        replayed: bool = False,
    ) -> Step:
        """Take in what a probe says."""
        state = state_of(predicate, self._side(record))
        if not again:
            self._states[point] = state
        step = Step(point=point, record=record, state=state, again=again, replayed=replayed)
        self._steps.append(step)
        self.progress(step)
        return step

    def _side(self, record: Record) -> Side:
        return Side(record, self.blobs)

    def _label(self, point: int) -> str:
        return self.points[point].cell.id
