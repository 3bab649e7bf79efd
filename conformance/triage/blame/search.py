"""The search for a smallest set of packages that makes a change appear. Pure.

Where one unit is at fault, halving finds it: of the units in their order the shortest head is
found whose move is enough, and its last unit is one of those looked for. It stays moved, with what
it needs, and the search goes on in the rest of that head until what is moved is enough. What is
found is enough by trial, and no unit of it can be left out by trial. Then everything else is moved
without it: where the change is there all the same, the rest is searched for what else is enough.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.triage.blame.moves import Moves, Unit

    Units = frozenset[Unit]
    Ask = Callable[[Units], "Shows"]

NONE: Final[Units] = frozenset()
"""Nothing is moved."""
PATIENCE: Final = 4
"""Heads between two others that say nothing, before it is tried in another way."""


class Shows(StrEnum):
    """What a mixture of both environments shows."""

    BEFORE = "before"
    """What the environment shows that is left."""
    AFTER = "after"
    """What the one shows that is gone to."""
    UNKNOWN = "unknown"
    """Neither: it fails for another reason, or cannot be made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Guilty:
    """Units that together are enough.

    Attributes:
        culprits: Units, none of which can be left out by trial; in order.
        beside: Units that they need: nothing can be tried without them.
        silent: Culprits without which nothing is shown that could be compared.
    """

    culprits: tuple[Unit, ...]
    beside: tuple[Unit, ...]
    silent: tuple[Unit, ...] = ()

    @property
    def units(self) -> Units:
        """All that is moved."""
        return frozenset((*self.culprits, *self.beside))


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What came of a search.

    Attributes:
        guilty: Each set that is enough by itself: the first, and those without the ones before.
        held: What is shown when everything is moved but the culprits and what needs them.
    """

    guilty: tuple[Guilty, ...]
    held: Shows


def search(moves: Moves, ask: Ask) -> Found:
    """Search for the units whose move makes a change appear.

    Args:
        moves: What can be moved. With nothing moved it is as before, with everything as after.
        ask: Tells what is shown when some units are moved. It is asked about no set twice, and
            about none that lacks what one of its units needs.
    """
    asking = _Asking(moves, ask)
    universe = frozenset(moves.units)
    guilty: list[Guilty] = []
    held = Shows.AFTER
    while held is Shows.AFTER:
        guilty.append(_guilty(asking, universe))
        universe -= moves.dependents(guilty[-1].culprits)
        held = asking(universe)
    return Found(guilty=tuple(guilty), held=held)


class _Asking:
    """What was asked already."""

    def __init__(self, moves: Moves, ask: Ask) -> None:
        self.moves = moves
        self._ask = ask
        self._known = {NONE: Shows.BEFORE, frozenset(moves.units): Shows.AFTER}

    def __call__(self, units: Units) -> Shows:
        if units not in self._known:
            self._known[units] = self._ask(units)
        return self._known[units]


def _guilty(asking: _Asking, universe: Units) -> Guilty:
    """Return units that are enough, of some that are."""
    kept = NONE
    rest = _without([frozenset(group) & universe for group in asking.moves.groups], kept)
    wide = False
    while asking(kept) is not Shows.AFTER:
        low, high = _stretch(asking, kept, rest)
        found = NONE.union(*rest[low:high])
        if len(found) > high - low:  # some of them were searched as one so far
            parts = (part for group in rest[low:high] for part in _split(asking.moves, group))
            rest = [*rest[:low], *parts]
            continue
        kept = asking.moves.closed(kept | found)
        rest = _without(rest[:low], kept)
        wide |= high - low > 1
    if wide:
        kept = _thinned(asking, kept, asking.moves.ordered(kept))
    return _irreducible(asking, kept)


def _split(moves: Moves, group: Units) -> list[Units]:
    """Return what is searched as one in parts: what is no suspect still as one, or each unit."""
    singles = [frozenset({unit}) for unit in moves.ordered(group)]
    suspects = [single for single in singles if single <= moves.suspects]
    rest = group.difference(*suspects)
    return [rest, *suspects] if suspects == singles[-1:] and rest else singles


def _without(groups: list[Units], kept: Units) -> list[Units]:
    return [left for group in groups if (left := group - kept)]


def _stretch(asking: _Asking, kept: Units, rest: list[Units]) -> tuple[int, int]:
    """Return two heads, one that is not enough beside what is kept, and one that is.

    They are as near to each other as can be: what lies between them says nothing, or most of it.
    """
    low, high = 0, len(rest)
    silent: set[int] = set()
    while (middle := _middle(low, high, silent)) is not None and len(silent) < PATIENCE:
        shown = asking(kept.union(*rest[:middle]))
        if shown is Shows.AFTER:
            high, silent = middle, {number for number in silent if number < middle}
        elif shown is Shows.BEFORE:
            low, silent = middle, {number for number in silent if number > middle}
        else:
            silent.add(middle)
    return low, high


def _middle(low: int, high: int, silent: set[int]) -> int | None:
    """Return a head between two that was not asked about, far from those that were."""
    asked = [low, *sorted(number for number in silent if low < number < high), high]
    one, other = max(pairwise(asked), key=lambda pair: pair[1] - pair[0])
    return (one + other) // 2 if other - one > 1 else None


def _thinned(asking: _Asking, kept: Units, some: tuple[Unit, ...]) -> Units:
    """Leave out of what is enough some units with what needs them, in ever smaller parts."""
    left = kept - asking.moves.dependents(some)
    if left == kept or asking(left) is Shows.AFTER:
        return left
    if len(some) == 1:
        return kept
    half = len(some) // 2
    return _thinned(asking, _thinned(asking, kept, some[half:]), some[:half])


def _irreducible(asking: _Asking, kept: Units) -> Guilty:
    """Leave out what can be, with what needs it; return what is left."""
    moves = asking.moves
    needed = NONE.union(*(moves.needs[unit] for unit in kept))
    silent: list[Unit] = []
    for unit in reversed(moves.ordered(kept)):
        if unit in needed and not silent:
            continue  # what needs it cannot be left out, and shows that without it
        shown = asking(kept - moves.dependents([unit]))
        if shown is Shows.AFTER:
            return _irreducible(asking, kept - moves.dependents([unit]))
        if shown is Shows.UNKNOWN:
            silent.append(unit)
    culprits = moves.ordered(kept - needed)
    return Guilty(
        culprits=culprits,
        beside=moves.ordered(kept & needed),
        silent=tuple(unit for unit in culprits if unit in silent),
    )
