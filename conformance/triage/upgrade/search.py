"""Where a case must be tried to know each of its changes between two points. Pure.

Both ends are tried first. Where they differ, some points in between are tried, for what changed
may have changed more than once; then each interval whose ends differ is halved. A change that is
undone between two points that were tried is not found: for that every point must be tried, or at
least those where another case breaks.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    Differ = Callable[[int, int], bool]
    """Says whether two points that were tried differ, the older first."""


def next_points(
    points: Sequence[int],
    seen: Collection[int],
    differ: Differ,
    *,
    coarse: Collection[int] = (),
    thorough: bool = False,
) -> tuple[int, ...]:
    """Return the points to be tried next; none when all is known that is to be known.

    Args:
        points: Every point that says something, as far as is known, in order.
        seen: Those of them that were tried.
        differ: Says whether two of those differ.
        coarse: Points to be tried before intervals are halved.
        thorough: Whether every point is to be tried.
    """
    if len(points) < 2:  # noqa: PLR2004 - nothing to compare
        return ()
    if untried := _untried(points, seen, (points[0], points[-1])):
        return untried
    if thorough:
        return _untried(points, seen, points)
    # Equal ends need no coarse points. Others may have been tried for the sake of another case,
    # and an interval whose ends differ there is halved like any other.
    if differ(points[0], points[-1]) and (untried := _untried(points, seen, coarse)):
        return untried
    found = []
    for before, after in changes(points, seen, differ):
        between = [point for point in points if before < point < after]
        if between:
            found.append(between[len(between) // 2])
    return tuple(found)


def changes(points: Sequence[int], seen: Collection[int], differ: Differ) -> list[tuple[int, int]]:
    """Return neighbours, of the points that were tried, between which something changed.

    What changes little by little differs between no neighbours: then it is where it is first seen
    to differ from the first point.

    Args:
        points: Every point that says something, in order; the first and the last were tried.
        seen: Those that were tried.
        differ: Says whether two of those differ.
    """
    tried = [point for point in points if point in seen]
    found = [pair for pair in pairwise(tried) if differ(*pair)]
    if found or not differ(tried[0], tried[-1]):
        return found
    return [next(pair for pair in pairwise(tried) if differ(tried[0], pair[1]))]


def _untried(
    points: Sequence[int], seen: Collection[int], wanted: Collection[int]
) -> tuple[int, ...]:
    return tuple(point for point in points if point in wanted and point not in seen)
