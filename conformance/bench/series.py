"""Measurements of a case over cells: what a plot shows, with its spread."""

from __future__ import annotations

from functools import partial
from statistics import median
from typing import TYPE_CHECKING, Final

import msgspec

from conformance.bench.measured import PHASES, Clock, read_clock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from conformance.bench.measured import Measured


BYTES: Final = "bytes"
"""Unit of a series of memory."""
PLANNED: Final = {"temporaries": "temp_size_in_bytes"}
"""Sizes that the compiler plans, by their names in a series."""
RISES: Final = ("compile", "run", *PLANNED)
"""Names of memory of which there is a series."""


class Point(msgspec.Struct, frozen=True):
    """The measurements of one cell.

    Attributes:
        cell: Id of the cell.
        release: Its jax release.
        median: Median of the rounds, in seconds, instructions or bytes.
        low: Smallest.
        high: Largest.
    """

    cell: str
    release: str
    median: float
    low: float
    high: float


class Series(msgspec.Struct, frozen=True):
    """A phase of a case, or its memory, over cells in their order.

    Attributes:
        case: Id of the case.
        size: Its size, None for a case without sizes.
        phase: The phase, or `memory of` and a name as in `Measured`.
        clock: The measure: a `Clock`, or `bytes` of memory.
        points: The cells that ran the case.
    """

    case: str
    size: int | None
    phase: str
    clock: str
    points: tuple[Point, ...]


def collect_series(
    case: str, cells: Sequence[tuple[str, str]], measured: Mapping[int, Sequence[Measured]]
) -> Iterator[Series]:
    """Yield a series for each phase and clock, and for memory, that some cell has.

    Args:
        case: Id of the case.
        cells: Id and jax release of each cell.
        measured: Measurements at the largest size, by index of the cell.
    """
    size = next((one.size for side in measured.values() for one in side), None)
    readers: dict[tuple[str, str], Callable[[Measured], float | None]] = {
        (phase, clock.value): partial(_read_phase, phase, clock)
        for phase in PHASES
        for clock in Clock
    }
    readers |= {(f"memory of {name}", BYTES): partial(_read_memory, name) for name in RISES}
    for (phase, clock), read in readers.items():
        points = []
        for index, (cell, release) in enumerate(cells):
            values = map(read, measured.get(index, ()))
            if found := [value for value in values if value is not None]:
                points.append(Point(cell, release, median(found), min(found), max(found)))
        if points:
            yield Series(case, size, phase, clock, tuple(points))


def _read_phase(phase: str, clock: Clock, measured: Measured) -> float | None:
    return read_clock(measured.phases.get(phase), clock)


def _read_memory(name: str, measured: Measured) -> float | None:
    plan = measured.compiled.plan.get(PLANNED.get(name, ""))
    found = measured.memory.get(name) if plan is None else plan
    # On a logarithmic scale there is no 0.
    return float(found) if found else None
