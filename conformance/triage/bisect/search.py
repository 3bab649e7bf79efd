"""The search for every change between two ends, with few probes. Pure.

Between two points that show different states there is a change; the search halves such stretches
until the points are neighbours. A third state within a stretch makes two stretches of it, so that
all changes are found that the halving meets, not only one. What says nothing is stepped around.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from conformance.triage.questions.state import Kind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from conformance.triage.questions.state import State

    States = Mapping[int, State]


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """Two points that show different states, with nothing in between that could be asked.

    Attributes:
        before: Number of the last point that shows the old.
        after: Number of the first point that shows the new.
        unknown: Numbers of the points between them, which say nothing.
    """

    before: int
    after: int
    unknown: tuple[int, ...] = ()


def changes(states: States) -> list[Change]:
    """Return the changes between probed points, whether or not points between them are left.

    Args:
        states: State of each probed point, by its number.
    """
    known = sorted(number for number, state in states.items() if state.is_known)
    return [
        Change(
            before=one,
            after=other,
            unknown=tuple(n for n in range(one + 1, other) if n in states),
        )
        for one, other in pairwise(known)
        if states[one] != states[other]
    ]


def last_good(states: States, change: Change, *, reverse: bool) -> int:
    """Return the good point nearest to a change, on the side of the good end.

    Args:
        states: State of each probed point, by its number.
        change: The change.
        reverse: Whether the good end is the last.
    """
    good = [number for number, state in states.items() if state.kind is Kind.GOOD]
    if reverse:
        return min(number for number in good if number >= change.after)
    return max(number for number in good if number <= change.before)


def wanted(states: States, width: int = 1, *, eager: bool = False) -> list[int]:
    """Return the points to be probed next; none when every change is between neighbours.

    Args:
        states: State of each probed point, by its number; the ends among them.
        width: How many may be probed at a time: one of each stretch.
        eager: Whether a stretch is cut into more than two parts where there are fewer stretches:
            more probes in all, in fewer rounds.

    Returns:
        Numbers of points, at most `width` and none twice.
    """
    stretches = [left for change in changes(states) if (left := _left(change, states))]
    stretches.sort(key=len, reverse=True)
    found: list[int] = []
    for number, left in enumerate(stretches[:width]):
        spare = max(width - len(stretches), 0) if eager and number == 0 else 0
        found += _cuts(left, 1 + spare)
    return found


def _left(change: Change, states: States) -> list[int]:
    """Return the points within a stretch that were not probed."""
    return [n for n in range(change.before + 1, change.after) if n not in states]


def _cuts(left: list[int], parts: int) -> list[int]:
    """Return the points that cut a stretch into equal parts."""
    count = min(parts, len(left))
    return list(dict.fromkeys(left[(n + 1) * len(left) // (count + 1)] for n in range(count)))
