"""Bisection of an ordered axis: every change between its ends, with few points tried. Pure.

Two points that differ have a change between them; their interval is halved until its ends are
neighbours. A third state within an interval splits it in two, so that the search finds every change
that the halving meets, not only the first. Points that cannot be compared are skipped. A change
that is undone between two tried points is missed, unless every point is tried.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from conformance.search.predicates import PointState

    Differ = Callable[[int, int], bool]
    """Compares two tried points, the lower number first; True if they differ."""
    States = Mapping[int, PointState]
    """State of each point that was tried, by its number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangePoint:
    """Two points that differ, with no point in between that could be compared.

    Attributes:
        before: Number of the last point before the change.
        after: Number of the first point after the change.
        unknown: Numbers of the points in between, which cannot be compared.
    """

    before: int
    after: int
    unknown: tuple[int, ...] = ()


def find_changes(tried: Iterable[int], differ: Differ) -> list[tuple[int, int]]:
    """Return the pairs of neighbouring tried points that differ.

    A gradual change differs between no neighbours. It is reported at the first point that differs
    from the first point of all.

    Args:
        tried: Numbers of the points that were tried and can be compared.
        differ: Predicate that compares two of the points.
    """
    # Points are tried in the order of halving, not in that of the axis.
    ordered = sorted(tried)
    found = [pair for pair in pairwise(ordered) if differ(*pair)]
    if found or len(ordered) <= 1 or not differ(ordered[0], ordered[-1]):
        return found
    return [next(pair for pair in pairwise(ordered) if differ(ordered[0], pair[1]))]


def choose_points(
    points: Sequence[int],
    tried: Collection[int],
    differ: Differ,
    *,
    coarse: Collection[int] = (),
    every: bool = False,
    width: int | None = None,
    eager: bool = False,
) -> list[int]:
    """Return the points to try next; none when every change is between neighbours.

    Args:
        points: Numbers of all points that can be compared, as far as is known, in order.
        tried: Numbers of the points that were tried.
        differ: Predicate that compares two tried points.
        coarse: Points to try before intervals are halved, if the ends differ.
        every: Whether to scan: to try every point.
        width: Number of points to try at a time, each of another interval; None for a point of
            every interval.
        eager: Whether to cut an interval into more than two parts if there are fewer intervals
            than `width`: more points in total, in fewer rounds.
    """
    if not points[1:]:
        return []
    left = [number for number in points if number not in tried]
    # Until both ends are known, no interval is known to hold a change.
    if at_ends := [number for number in left if number in (points[0], points[-1])]:
        return at_ends
    if every:
        return left
    # Ends that are alike need no coarse points. Others may have been tried for the sake of another
    # target, and an interval whose ends differ there is halved like any other.
    if (at_coarse := [number for number in left if number in coarse]) and differ(
        points[0], points[-1]
    ):
        return at_coarse
    known = [number for number in points if number in tried]
    inner = (
        [number for number in left if before < number < after]
        for before, after in find_changes(known, differ)
    )
    # The longest interval first: with few trials at a time it narrows the search most.
    intervals = sorted(filter(None, inner), key=len, reverse=True)
    width = len(intervals) if width is None else width
    spare = max(width - len(intervals), 0) if eager else 0
    found: list[int] = []
    for number, interval in enumerate(intervals[:width]):
        parts = min(1 + (spare if number == 0 else 0), len(interval))
        cuts = (interval[(n + 1) * len(interval) // (parts + 1)] for n in range(parts))
        # The cuts of a short interval may coincide.
        found += dict.fromkeys(cuts)
    return found


def find_change_points(states: States) -> list[ChangePoint]:
    """Return the changes between points that were tried, whether or not others lie in between.

    Args:
        states: State of each point that was tried.
    """
    known = (number for number, state in states.items() if state.is_known)
    return [
        ChangePoint(
            before=before,
            after=after,
            unknown=tuple(n for n in range(before + 1, after) if n in states),
        )
        for before, after in find_changes(known, _make_differ(states))
    ]


def choose_untried_points(states: States, width: int = 1, *, eager: bool = False) -> list[int]:
    """Return the points to try next, if states are compared for equality.

    Args:
        states: State of each point that was tried, the ends among them.
        width: Number of points to try at a time.
        eager: See `choose_points`.
    """
    known = {number for number, state in states.items() if state.is_known}
    if not known:
        return []
    between = range(min(known), max(known) + 1)
    points = [number for number in between if number in known or number not in states]
    return choose_points(points, known, _make_differ(states), width=width, eager=eager)


def _make_differ(states: States) -> Differ:
    return lambda before, after: states[before] != states[after]
