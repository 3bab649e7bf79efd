"""Delta debugging: the search for a minimal set of units that makes a difference. Pure.

The problem is that of Zeller and Hildebrandt, "Simplifying and Isolating Failure-Inducing Input",
IEEE Transactions on Software Engineering 28(2), 2002: the test of a set of units has three results,
and the search is for a set that is enough and has no superfluous unit, by trial. Their algorithm,
ddmin, halves the set. If the units are ordered, it takes fewer trials to bisect heads: the last
unit of the shortest head that is enough belongs to the minimal set. That unit is kept, and the
search continues in the rest of the head until the kept units are enough. Unresolved heads are
skipped, and the units that they hide are thinned out in ever smaller parts, as in ddmin.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from conformance.search.predicates import PointKind

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from conformance.search.predicates import PointState

PATIENCE: Final = 4
"""Unresolved heads between two resolved heads before the bisection gives up."""

U = TypeVar("U", bound="Any")


class SetResult(StrEnum):
    """The result of the test of a set of units."""

    ENOUGH = "enough"
    """The set makes the difference."""
    NOT_ENOUGH = "not enough"
    """The set does not make the difference."""
    UNRESOLVED = "unresolved"
    """Neither: with this set the target fails for another reason, or cannot be tried."""


def classify_set(state: PointState, *, enough: PointKind) -> SetResult:
    """Return the result for a set by the state of the target with it.

    Args:
        state: The state, good or bad if it is resolved.
        enough: The kind of state that shows the difference.
    """
    if state.kind is enough:
        return SetResult.ENOUGH
    is_resolved = state.kind in {PointKind.GOOD, PointKind.BAD}
    return SetResult.NOT_ENOUGH if is_resolved else SetResult.UNRESOLVED


@dataclass(frozen=True, slots=True, kw_only=True)
class Units(Generic[U]):
    """Units, each of which comes after the units that it needs.

    Attributes:
        order: The units.
        needs: Direct and indirect requirements of each unit; empty if there are none.
        suspects: The likely culprits.
        groups: Consecutive units that are first searched as a whole; empty for single units.
    """

    order: tuple[U, ...]
    needs: Mapping[U, frozenset[U]] = field(default_factory=dict)
    suspects: frozenset[U] = frozenset()
    groups: tuple[tuple[U, ...], ...] = ()

    def add_needs(self, units: Iterable[U]) -> frozenset[U]:
        """Return units with their requirements."""
        found = frozenset(units)
        return found.union(*(self.needs.get(unit, ()) for unit in found))

    def add_dependents(self, units: Collection[U]) -> frozenset[U]:
        """Return units with their dependents."""
        wanted = frozenset(units)
        return wanted | {unit for unit, needed in self.needs.items() if needed & wanted}

    def sort(self, units: Iterable[U]) -> tuple[U, ...]:
        """Return units in order."""
        wanted = frozenset(units)
        return tuple(unit for unit in self.order if unit in wanted)


@dataclass(frozen=True, slots=True, kw_only=True)
class MinimalSet(Generic[U]):
    """A set of units that is enough.

    Attributes:
        culprits: Units, none of which can be left out, by trial; in order.
        needed: Units that they need, without which they cannot be tried.
        unresolved: Culprits that cannot be distinguished: without them, the result is unresolved.
    """

    culprits: tuple[U, ...]
    needed: tuple[U, ...] = ()
    unresolved: tuple[U, ...] = ()

    @property
    def units(self) -> frozenset[U]:
        """All units of the set."""
        return frozenset((*self.culprits, *self.needed))


class SetTest(Generic[U]):
    """The test of sets of units, which tries no set twice.

    Args:
        units: The units.
        test: Tries a set of units, given in order.
        known: Results that need no trial; the empty set is not enough.
    """

    def __init__(
        self,
        units: Units[U],
        test: Callable[[tuple[U, ...]], SetResult],
        known: Mapping[frozenset[U], SetResult] | None = None,
    ) -> None:
        self.units = units
        self._test = test
        # No unit is moved in the empty set, so it cannot make the difference.
        self._known = {frozenset[U](): SetResult.NOT_ENOUGH, **(known or {})}

    def __call__(self, chosen: Iterable[U]) -> SetResult:
        """Return the result for a set, tried now if it was not before."""
        key = frozenset(chosen)
        if key not in self._known:
            self._known[key] = self._test(self.units.sort(key))
        return self._known[key]

    def is_enough(self, chosen: Iterable[U]) -> bool:
        """Say whether a set is enough."""
        return self(chosen) is SetResult.ENOUGH

    def add_units(self, units: Iterable[U]) -> list[U]:
        """Add the units that are new at the end of the order, and return them."""
        new = [unit for unit in dict.fromkeys(units) if unit not in self.units.order]
        self.units = replace(self.units, order=(*self.units.order, *new))
        return new


def minimize(test: SetTest[U], universe: Iterable[U], *, strict: bool = False) -> MinimalSet[U]:
    """Return a minimal subset that is enough of a set that is enough.

    Args:
        test: Test of sets, which receives only sets that are closed under needs.
        universe: The set, which is enough.
        strict: Whether an unresolved head counts as not enough, which takes fewer trials if
            culprits seldom hide in unresolved sets.
    """
    units = test.units
    everything = frozenset(universe)
    groups = units.groups or tuple((unit,) for unit in units.order)
    kept: frozenset[U] = frozenset()
    rest = _subtract([frozenset(group) & everything for group in groups], kept)
    is_wide = False
    while not test.is_enough(kept):
        # The last unit of the shortest head that is enough is needed: keep it, and search before
        # it.
        low, high = _bisect_heads(test, kept, rest, strict=strict)
        found = frozenset[U]().union(*rest[low:high])
        if len(found) > high - low:  # groups of units were searched as one so far
            parts = (part for group in rest[low:high] for part in _split(units, group))
            rest = [*rest[:low], *parts]
            continue
        kept = units.add_needs(kept | found)
        rest = _subtract(rest[:low], kept)
        # Heads between both were unresolved: any of their units may be superfluous.
        is_wide |= high - low > 1
    if is_wide:
        kept = _thin_out(test, kept, units.sort(kept))
    return _leave_out(test, kept)


def _subtract(groups: list[frozenset[U]], kept: frozenset[U]) -> list[frozenset[U]]:
    return [left for group in groups if (left := group - kept)]


def _split(units: Units[U], group: frozenset[U]) -> list[frozenset[U]]:
    """Return the parts of a group: a part without suspects and each suspect, or each unit."""
    singles = [frozenset({unit}) for unit in units.sort(group)]
    suspects = [single for single in singles if single <= units.suspects]
    rest = group.difference(*suspects)
    return [rest, *suspects] if suspects == singles[-1:] and rest else singles


def _bisect_heads(
    test: SetTest[U], kept: frozenset[U], rest: list[frozenset[U]], *, strict: bool
) -> tuple[int, int]:
    """Return the lengths of two heads: with the kept units, only the second is enough.

    They are as close as possible: the heads between them are unresolved, or most of them.
    """
    low, high = 0, len(rest)
    unresolved: set[int] = set()
    while (middle := _pick_head(low, high, unresolved)) is not None and len(unresolved) < PATIENCE:
        result = test(kept.union(*rest[:middle]))
        if result is SetResult.ENOUGH:
            high, unresolved = middle, {number for number in unresolved if number < middle}
        elif result is SetResult.NOT_ENOUGH or strict:
            low, unresolved = middle, {number for number in unresolved if number > middle}
        else:
            unresolved.add(middle)
    return low, high


def _pick_head(low: int, high: int, unresolved: set[int]) -> int | None:
    """Return the length of an untried head between two heads, far from tried heads."""
    tried = [low, *sorted(number for number in unresolved if low < number < high), high]
    # The neighbours of an unresolved head tend to be unresolved, so go far from all of them.
    before, after = max(pairwise(tried), key=lambda pair: pair[1] - pair[0])
    return (before + after) // 2 if after - before > 1 else None


def _thin_out(test: SetTest[U], kept: frozenset[U], some: tuple[U, ...]) -> frozenset[U]:
    """Remove superfluous units from a sufficient set, with dependents, in ever smaller parts."""
    left = kept - test.units.add_dependents(some)
    if left == kept or test.is_enough(left):
        return left
    if len(some) == 1:
        return kept
    half = len(some) // 2
    return _thin_out(test, _thin_out(test, kept, some[half:]), some[:half])


def _leave_out(test: SetTest[U], kept: frozenset[U]) -> MinimalSet[U]:
    """Return the set without superfluous units and their dependents, as a minimal set."""
    units = test.units
    needed = frozenset[U]().union(*(units.needs.get(unit, ()) for unit in kept))
    unresolved: list[U] = []
    # From the end: later units need earlier ones, never the reverse.
    for unit in reversed(units.sort(kept)):
        if unit in needed and not unresolved:
            continue  # its dependents cannot be left out, so neither can the unit
        left = kept - units.add_dependents([unit])
        result = test(left)
        if result is SetResult.ENOUGH:
            # Without this unit, units that were needed before may be superfluous: start again.
            return _leave_out(test, left)
        if result is SetResult.UNRESOLVED:
            unresolved.append(unit)
    culprits = units.sort(kept - needed)
    return MinimalSet(
        culprits=culprits,
        needed=units.sort(kept & needed),
        unresolved=tuple(unit for unit in culprits if unit in unresolved),
    )


def minimize_all(test: SetTest[U]) -> tuple[list[MinimalSet[U]], SetResult]:
    """Return disjoint minimal sets, and the result without any of their units.

    Args:
        test: Tries sets; all units together are enough.
    """
    universe = frozenset(test.units.order)
    found: list[MinimalSet[U]] = []
    result = SetResult.ENOUGH
    while result is SetResult.ENOUGH:
        found.append(minimize(test, universe))
        # A second cause shows only without the first one, and without units that need it.
        universe -= test.units.add_dependents(found[-1].culprits)
        result = test(universe)
    return found, result


@dataclass(frozen=True, slots=True, kw_only=True)
class EnoughSet(Generic[U]):
    """The search result for units that may fail together or undo each other.

    Attributes:
        enough: A set that is enough, empty if none was found.
        together: The units that can be tried all together.
        refused: Units that make the result of the other units unresolved.
    """

    enough: tuple[U, ...]
    together: tuple[U, ...]
    refused: tuple[U, ...]


def find_enough(
    test: SetTest[U], learn: Callable[[tuple[U, ...]], Sequence[U]] = lambda _: ()
) -> EnoughSet[U]:
    """Find a set that is enough, if all units together may not be.

    All units are tried together, without those that make the result unresolved. If that is not
    enough, units are learned that matter only then. Ever smaller parts are tried last, since some
    units may undo the effect of others.

    Args:
        test: Tries sets.
        learn: Returns the units that matter while a set is tried, known ones or not.
    """
    units, refused = list(test.units.order), list[U]()
    enough: Sequence[U] = ()
    while not enough:
        result = test(units)
        if result is SetResult.UNRESOLVED:
            units, result = _bisect_unresolved(test, units)
            if result is SetResult.UNRESOLVED:
                refused.append(units[-1])
                units = [unit for unit in test.units.order if unit not in refused]
                continue
        if result is SetResult.ENOUGH:
            enough = units
        elif new := test.add_units(learn(test.units.sort(units))):
            units = [*units, *new]
        else:
            break
    if not enough:
        parts = (
            part for size in iterate_sizes(len(units)) for part in split_into_chunks(units, size)
        )
        enough = next(filter(test.is_enough, chain(([unit] for unit in refused), parts)), ())
    ordered = test.units.sort
    return EnoughSet(enough=ordered(enough), together=ordered(units), refused=ordered(refused))


def _bisect_unresolved(test: SetTest[U], units: list[U]) -> tuple[list[U], SetResult]:
    """Return a head of units that is enough, or the shortest unresolved head."""
    short, long = 0, len(units)
    while long - short > 1:
        middle = (short + long) // 2
        result = test(units[:middle])
        if result is SetResult.ENOUGH:
            return units[:middle], result
        if result is SetResult.NOT_ENOUGH:
            short = middle
        else:
            long = middle
    return units[:long], SetResult.UNRESOLVED


def sweep(
    find_units: Callable[[], Sequence[U]],
    take: Callable[[Sequence[Sequence[U]]], bool],
    *,
    together: bool = True,
) -> None:
    """Apply reductions by units, in parts of ever smaller size, as long as any part succeeds.

    Args:
        find_units: Function that returns the units, which change with each reduction.
        take: Function that applies the first possible part, and returns whether there was one.
        together: Whether several units are tried at once.
    """
    units = find_units()
    size = len(units) if together else 1
    while size:
        while take(list(split_into_chunks(units, size))):
            units = find_units()
        # Reductions may have left fewer units than the current size.
        size = min(size, len(units)) // 2


def split_into_chunks(items: Sequence[U], size: int) -> Iterator[Sequence[U]]:
    """Yield consecutive items in chunks of a size; the last chunk may be shorter."""
    return (items[start : start + size] for start in range(0, len(items), size))


def iterate_sizes(count: int) -> Iterator[int]:
    """Yield the sizes of ddmin's parts of a count: a half, a quarter, ..., 1, each rounded up."""
    parts = 2
    while parts < 2 * count:
        yield -(-count // parts)
        parts *= 2
