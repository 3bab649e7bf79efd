"""The cells of the points of an axis, each resolved when it is first needed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conformance.cells.releases import is_nightly
from conformance.engine.job import PlannedCell
from conformance.errors import InfrastructureError, UsageError
from conformance.model.run import Exclusion

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from conformance.cells.cell import Cell
    from conformance.cells.lock import Lock
    from conformance.engine.preparation import Preparation
    from conformance.search.axes import AxisPoint

RESTART = "the same command goes on where it was"
"""The advice of errors that may be gone next time: the log of a search is kept."""


class Points:
    """Planned cells along an axis.

    The ends and the releases are resolved at once; those that cannot be installed are left out.
    Nightlies are many, and each is resolved over the network: only when it is tried. A nightly
    that cannot be installed is a cell with the reason.

    Args:
        points: The points of the axis, in order.
        prepare: Looks up locks.
        check: Raises an `InfrastructureError` if the index of nightlies does not answer.

    Raises:
        UsageError: If an end cannot be installed.
        InfrastructureError: If the lock of an end cannot be resolved now.
    """

    def __init__(
        self,
        points: Sequence[AxisPoint],
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
        self.locks: dict[str, Lock] = dict(preparation.locks)
        self.exclusions: list[Exclusion] = list(preparation.exclusions)

    def __len__(self) -> int:
        return len(self._points)

    def __iter__(self) -> Iterator[PlannedCell]:
        return map(self.__getitem__, range(len(self)))

    def __getitem__(self, number: int) -> PlannedCell:
        """Return the cell of a point, resolved now if it was not before.

        Raises:
            InfrastructureError: If the index of nightlies does not answer any more.
        """
        point = self._points[number]
        if point.cell.id not in self._planned:
            self._planned[point.cell.id] = self._resolve(point)
        return self._planned[point.cell.id]

    def _resolve(self, point: AxisPoint) -> PlannedCell:
        found = self._prepare([point.cell])
        self.locks.update(found.locks)
        self.exclusions += found.exclusions
        for planned in found.cells:
            if planned.failure:
                self._check_index()
                left_out = Exclusion(case="", cell=planned.cell.id, reason=planned.failure)
                self.exclusions.append(left_out)
            return planned
        reason = found.exclusions[0].reason
        versions = {"jax": point.cell.release}
        return PlannedCell(
            cell=point.cell, versions=versions, lock_hash="", cell_hash="", missing=reason
        )

    def _check_index(self) -> None:
        """Raise if the index does not answer: a single missing wheel is stepped around."""
        try:
            self._check()
        except InfrastructureError as error:
            raise InfrastructureError(f"{error}; {RESTART}") from error
