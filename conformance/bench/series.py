"""Measurements of a case over cells: what a plot shows, with its spread."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING

import msgspec

from conformance.bench.comparison import Clock, read_clock
from conformance.bench.measured import PHASES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from conformance.bench.measured import Measured


class Point(msgspec.Struct, frozen=True):
    """The measurements of one cell.

    Attributes:
        cell: Id of the cell.
        release: Its jax release.
        median: Median of the rounds, in seconds or instructions.
        low: Smallest.
        high: Largest.
    """

    cell: str
    release: str
    median: float
    low: float
    high: float


class Series(msgspec.Struct, frozen=True):
    """A phase of a case over cells, in their order.

    Attributes:
        case: Id of the case.
        size: Its size, None for a case without sizes.
        phase: The phase.
        clock: The measure.
        points: The cells that ran the case.
    """

    case: str
    size: int | None
    phase: str
    clock: Clock
    points: tuple[Point, ...]


def collect_series(
    case: str, cells: Sequence[tuple[str, str]], measured: Mapping[int, Sequence[Measured]]
) -> Iterator[Series]:
    """Yield a series for each phase and clock that some cell has.

    Args:
        case: Id of the case.
        cells: Id and jax release of each cell.
        measured: Measurements at the largest size, by index of the cell.
    """
    size = next((one.size for side in measured.values() for one in side), None)
    for phase in PHASES:
        for clock in Clock:
            points = []
            for index, (cell, release) in enumerate(cells):
                found = [
                    value
                    for one in measured.get(index, ())
                    if (value := read_clock(one.phases.get(phase), clock)) is not None
                ]
                if found:
                    spread = (median(found), min(found), max(found))
                    points.append(Point(cell, release, *spread))
            if points:
                yield Series(case, size, phase, clock, tuple(points))
