"""Samples of the points of a bisection: what came of each probe, also of an earlier search."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from conformance.engine.job_comparison import StoredJob
from conformance.errors import InfrastructureError
from conformance.model.outcome import Outcome
from conformance.triage.bisect.answer import Step
from conformance.triage.bisect.points import RESTART
from conformance.triage.questions.figures import MARGIN
from conformance.triage.questions.predicate import SILENT, Ends, ending, quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from conformance.engine.blobs import BlobStore
    from conformance.engine.run_directory import Results
    from conformance.judge.tolerance import Tolerance
    from conformance.model.record import Record
    from conformance.triage.bisect.points import Points
    from conformance.triage.bisect.prober import Prober
    from conformance.triage.questions.figures import Figure


@dataclass(slots=True, kw_only=True)
class Samples:
    """The points of a bisection, and what was seen of each.

    Attributes:
        points: Cells along the axis, in order; the ends are the first and the last.
        prober: Tries the target.
        blobs: Where artifacts are.
        log: Gets every record before it counts.
        known: Records of an earlier search with the same question.
        tolerance: How far values may differ.
        figure: What is measured, if that is the question.
        progress: Called with each step.
    """

    points: Points
    prober: Prober
    blobs: BlobStore
    log: Results
    known: Iterable[Record]
    tolerance: Tolerance
    figure: Figure | None = None
    progress: Callable[[Step], None]
    _unstable: frozenset[int] = frozenset()
    _samples: dict[int, list[StoredJob]] = field(default_factory=dict)
    _past: dict[int, deque[Record]] = field(default_factory=dict)
    _from_log: set[int] = field(default_factory=set)
    _announced: set[int] = field(default_factory=set)

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
        # Another sample, or a figure, is no other one where the result is kept from before.
        again = again or self.figure is not None or any(point in self._samples for point in points)
        for record in self.prober.probe(cells, again=again):
            self.log.append(record)
            self._from_log.discard(places[record.cell])
            self._add(places[record.cell], record)

    def _add(self, point: int, record: Record) -> None:
        self._samples.setdefault(point, []).append(self._side(record))
        if point in self._announced and len(self._samples[point]) == 1:
            said = quoted(ending(record))
            self.progress(
                Step(point=point, samples=[record], state=None, said=said,
                     replayed=point in self._from_log)
            )  # fmt: skip

    def _record(self, point: int) -> Record:
        return self._samples[point][0].record

    def _side(self, record: Record) -> StoredJob:
        return StoredJob(record, self.blobs)

    def _label(self, point: int) -> str:
        return self.points[point].cell.id

    def _ends(self, good: int, bad: int) -> Ends:
        return Ends(
            good=self._samples[good][0], bad=self._samples[bad][0],
            names=(self._label(good), self._label(bad)), tolerance=self.tolerance,
            unstable=self._unstable,
        )  # fmt: skip

    def _try_all(self) -> None:
        """Try every point that was not."""
        left = [n for n in range(len(self.points)) if n not in self._samples]
        self._announced.update(left)
        self._probe(left)

    def _refuse_faults(self, *ends: int) -> None:
        """Refuse an end that could not be tried: what stood in the way may be gone next time."""
        for end in ends:
            record = self._samples[end][-1].record
            if record.outcome is Outcome.INFRA:
                said = record.error.message if record.error else record.outcome
                raise InfrastructureError(f"{self.points.labels[end]}: {said}; {RESTART}")
