"""The trials of a search: samples of its points, including those of earlier searches, and steps."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter, defaultdict, deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from conformance.engine.runs.stored_job import StoredJob
from conformance.errors import InfrastructureError
from conformance.model.outcome import Outcome
from conformance.search.answers import SearchStep
from conformance.search.axes import RESTART
from conformance.search.equivalence import SILENT, format_ending, shorten
from conformance.search.point_predicates import MARGIN, compare_endpoints
from conformance.search.predicates import Endpoints

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from conformance.engine.cache.blobs import BlobStore
    from conformance.engine.job import PlannedCell
    from conformance.judge.tolerance import Tolerance
    from conformance.model.record import Record
    from conformance.search.metrics import Metric
    from conformance.search.point_predicates import MetricPredicate, PointPredicate
    from conformance.search.predicates import PointState
    from conformance.search.prober import Prober

RECOUNTS: Final = 3
"""Additional trials of a point whose first two trials disagree."""

K = TypeVar("K")


@dataclass(slots=True, kw_only=True)
class Trials(ABC, Generic[K]):
    """The points of a search, their samples and their states.

    Attributes:
        blobs: Artifacts of the trials.
        metric: The metric, None if nothing is measured.
        progress: Callback that receives each step.
        samples: Samples of each point that was tried.
        states: State of each point, by the latest predicate.
        steps: Every step, in order.
        announced: Points whose first result is reported before the point has a state.
    """

    blobs: BlobStore
    metric: Metric | None = None
    progress: Callable[[SearchStep[K]], None] = lambda _: None
    samples: dict[K, list[StoredJob]] = field(default_factory=dict)
    states: dict[K, PointState] = field(default_factory=dict)
    steps: list[SearchStep[K]] = field(default_factory=list)
    announced: set[K] = field(default_factory=set)
    _replayed: set[K] = field(default_factory=set)

    @abstractmethod
    def _probe(self, points: Sequence[K], *, again: bool) -> Iterator[tuple[K, Record]]:
        """Try the target at points, and yield each with its record, in any order.

        Args:
            points: The points; a point may occur several times.
            again: Whether to ignore cached results.
        """

    def _replay(self, point: K) -> Record | None:
        """Return the next record of a point in an earlier search, None if there are no more."""
        del point  # searches without a log repeat no record
        return None

    def try_points(
        self, points: Sequence[K], *, again: bool = False, often: int | None = None
    ) -> None:
        """Try the target at some points.

        Args:
            points: The points.
            again: Whether to ignore the results of earlier searches.
            often: Samples of each point; None for as many as may decide.
        """
        left: list[K] = []
        # Fewer samples than the margin cannot decide on a metric.
        for number in range(often or (1 if self.metric is None else MARGIN)):
            # There and back: a slow drift of the host meets all points alike.
            for point in points if number % 2 == 0 else reversed(points):
                if not again and (record := self._replay(point)) is not None:
                    self._replayed.add(point)
                    self._add(point, record)
                else:
                    left.append(point)
        # A second sample, or a metric, must not come from the cache of results.
        again = again or self.metric is not None or any(point in self.samples for point in points)
        for point, record in self._probe(left, again=again):
            self._replayed.discard(point)
            self._add(point, record)

    def _add(self, point: K, record: Record) -> None:
        samples = self.samples.setdefault(point, [])
        samples.append(StoredJob(record, self.blobs))
        if point in self.announced and len(samples) == 1:
            self.progress(self._step(point, None, shorten(format_ending(record))))

    def decide(
        self, predicate: PointPredicate, points: Iterable[K], *, again: bool = False
    ) -> dict[K, PointState]:
        """Return the states of points, each tried as often as the predicate requires.

        Args:
            predicate: The predicate.
            points: The points.
            again: Whether to ignore earlier samples.
        """
        left = list(points)
        if again:
            for point in left:
                self.samples.pop(point, None)
        states: dict[K, PointState] = {}
        while True:
            for point in left:
                samples = self.samples.get(point)
                if samples and (state := predicate.classify(samples)) is not None:
                    states[point] = state
                    self._report(predicate, point, state, again=again)
            if not (left := [point for point in left if point not in states]):
                return states
            self.try_points(left, again=again)

    def _report(
        self, predicate: PointPredicate, point: K, state: PointState, *, again: bool
    ) -> None:
        if not again:
            self.states[point] = state
        step = self._step(point, state, predicate.summarize(self.samples[point]), again=again)
        self.steps.append(step)
        if point in self.announced:
            self.announced.discard(point)  # the timeline shows the state
        else:
            self.progress(step)

    def _step(
        self, point: K, state: PointState | None, summary: str, *, again: bool = False
    ) -> SearchStep[K]:
        records = [side.record for side in self.samples[point]]
        return SearchStep(
            point=point, samples=records, state=state, summary=summary, again=again,
            seconds=sum(record.seconds.get("job", 0.0) for record in records),
            replayed=point in self._replayed,
        )  # fmt: skip

    def confirm(self, predicate: PointPredicate, *points: K) -> dict[K, Counter[PointState]]:
        """Try points once more, and return the states of points whose trials disagree."""
        flaky: dict[K, Counter[PointState]] = {}
        for point, state in self.decide(predicate, points, again=True).items():
            # Kinds only: two wordings of one failure do not make a point flaky.
            if state.kind is not self.states[point].kind:
                flaky[point] = Counter([self.states[point], state])
        # Only a flaky point needs a rate; a stable one has been confirmed.
        for _ in range(RECOUNTS if flaky else 0):
            for point, state in self.decide(predicate, flaky, again=True).items():
                flaky[point][state] += 1
        return flaky


@dataclass(slots=True, kw_only=True)
class CellTrials(Trials[K]):
    """Trials of points that have separate cells, with a log.

    Attributes:
        cell_of: Function that returns the cell of a point, prepared if necessary.
        name_of: Function that returns the name of a point in messages; None for the ids of cells.
        prober: Prober of the target.
        prepare: Callback that receives the points of each round before their cells are used.
        keep: Callback that logs each record before it is used.
        known: Records of an earlier search with the same predicate.
        tolerance: Tolerance of equal values.
    """

    cell_of: Callable[[K], PlannedCell]
    name_of: Callable[[K], str] | None = None
    prober: Prober
    prepare: Callable[[Sequence[K]], object] = lambda _: None
    keep: Callable[[Record], object]
    known: Iterable[Record] = ()
    tolerance: Tolerance
    _past: dict[tuple[str, str], deque[Record]] = field(init=False)

    def __post_init__(self) -> None:
        """Group the records of the earlier search by cell and hash of the cell."""
        self._past = defaultdict(deque)
        for record in self.known:
            # The fault of a host may be gone by now: such records are not reused.
            if record.outcome not in SILENT and record.cell_hash:
                self._past[record.cell, record.cell_hash].append(record)

    def get_record(self, point: K) -> Record:
        """Return the first record of a point."""
        return self.samples[point][0].record

    def fails(self, point: K) -> bool:
        """Say whether the target fails at a point."""
        return self.get_record(point).outcome not in {Outcome.OK, *SILENT}

    def make_endpoints(self, good: K, bad: K, unstable: frozenset[int] = frozenset()) -> Endpoints:
        """Return two points as endpoints."""
        return Endpoints(
            good=self.samples[good][0], bad=self.samples[bad][0],
            names=(self.cell_of(good).cell.id, self.cell_of(bad).cell.id),
            tolerance=self.tolerance, unstable=unstable,
        )  # fmt: skip

    def _replay(self, point: K) -> Record | None:
        cell = self.cell_of(point)
        # A user's own environment may have changed since.
        past = None if cell.cell.interpreter else self._past.get((cell.cell.id, cell.cell_hash))
        return past.popleft() if past else None

    def _probe(self, points: Sequence[K], *, again: bool) -> Iterator[tuple[K, Record]]:
        self.prepare(points)
        cells = [self.cell_of(point) for point in points]
        point_of = {cell.cell.id: point for cell, point in zip(cells, points, strict=True)}
        for record in self.prober.probe(cells, again=again):
            # Written to the log before it counts: an interrupted search loses no trial.
            self.keep(record)
            yield point_of[record.cell], record

    def try_endpoints(self, *ends: K) -> None:
        """Try both endpoints.

        Raises:
            InfrastructureError: If an endpoint cannot be tried now, which may be temporary.
        """
        self.try_points(ends)
        for end in ends:
            record = self.samples[end][-1].record
            if record.outcome is Outcome.INFRA:
                name = self.name_of(end) if self.name_of else self.cell_of(end).cell.id
                reason = record.error.message if record.error else record.outcome
                raise InfrastructureError(f"{name}: {reason}; {RESTART}")

    def measure_endpoints(self, metric: Metric, good: K, bad: K) -> MetricPredicate:
        """Measure both endpoints until their metrics differ.

        Raises:
            EndpointsError: If they do not differ, or an endpoint lacks the metric.
        """
        names = (self.cell_of(good).cell.id, self.cell_of(bad).cell.id)
        predicate = None
        while predicate is None:
            # In turns: other work of the machine falls on both.
            self.try_endpoints(good, bad)
            samples = (self.samples[good], self.samples[bad])
            predicate = compare_endpoints(metric, *samples, names)
        return predicate
