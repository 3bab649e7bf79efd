"""The points of a search, each looked up when it is asked for first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, overload

from conformance.cells.releases import is_nightly
from conformance.engine.job import PlannedCell
from conformance.errors import InfrastructureError, UsageError
from conformance.model.run import Exclusion

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from conformance.cells.cell import Cell
    from conformance.cells.lock import Lock
    from conformance.engine.preparation import Preparation
    from conformance.triage.bisect.axis import Point

RESTART = "the same command goes on where it was"


class Points(Sequence[PlannedCell]):
    """Planned cells along an axis; those that cannot be had are left out, or say why.

    The ends and the releases are looked up at once. Nightlies are many, and each must be resolved
    over the network: one is looked up when it is its turn.

    Args:
        points: What is varied, in order.
        prepare: Looks up locks.
        check: Raises an `InfrastructureError` if the index of nightlies does not answer.

    Raises:
        UsageError: If an end cannot be had.
        InfrastructureError: If the lock of an end cannot be had now.
    """

    def __init__(
        self,
        points: Sequence[Point],
        prepare: Callable[[Iterable[Cell]], Preparation],
        check: Callable[[], object],
    ) -> None:
        self._prepare = prepare
        self._check = check
        ends = (points[0], points[-1])
        at_once = [p.cell for p in points if p in ends or not is_nightly(p.cell.release)]
        preparation = prepare(at_once)
        reasons = {entry.cell: entry.reason for entry in preparation.exclusions}
        self._planned = {planned.cell.id: planned for planned in preparation.cells}
        for end in ends:
            if end.cell.id in reasons:
                raise UsageError(f"{end.label}: cannot be an end: {reasons[end.cell.id]}")
            if failure := self._planned[end.cell.id].failure:
                raise InfrastructureError(f"{end.label}: {failure}; {RESTART}")
        self._points = [point for point in points if point.cell.id not in reasons]
        self.labels = tuple(point.label for point in self._points)
        self.places = {point.cell.id: n for n, point in enumerate(self._points)}
        self.locks: dict[str, Lock] = dict(preparation.locks)
        self.exclusions: list[Exclusion] = list(preparation.exclusions)

    def __len__(self) -> int:
        return len(self._points)

    @overload
    def __getitem__(self, number: int) -> PlannedCell: ...

    @overload
    def __getitem__(self, number: slice) -> Sequence[PlannedCell]: ...

    def __getitem__(self, number: int | slice) -> PlannedCell | Sequence[PlannedCell]:
        """Return a point, looked up now if it was not before.

        Raises:
            InfrastructureError: If the index of nightlies does not answer any more.
        """
        if isinstance(number, slice):
            return [self[n] for n in range(*number.indices(len(self)))]
        point = self._points[number]
        if point.cell.id not in self._planned:
            self._planned[point.cell.id] = self._look(point)
        return self._planned[point.cell.id]

    def _look(self, point: Point) -> PlannedCell:
        found = self._prepare([point.cell])
        self.locks.update(found.locks)
        self.exclusions += found.exclusions
        for planned in found.cells:
            if planned.failure:
                self._refuse_silence()
                left_out = Exclusion(case="", cell=planned.cell.id, reason=planned.failure)
                self.exclusions.append(left_out)
            return planned
        reason = found.exclusions[0].reason
        versions = {"jax": point.cell.release}
        return PlannedCell(
            cell=point.cell, versions=versions, lock_hash="", cell_hash="", missing=reason
        )

    def _refuse_silence(self) -> None:
        """Refuse to go on without an index: one wheel that is gone can be stepped around."""
        try:
            self._check()
        except InfrastructureError as error:
            raise InfrastructureError(f"{error}; {RESTART}") from error
