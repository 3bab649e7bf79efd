"""What can be moved from one environment's versions to another's, and in which order. Pure.

A package that asks for another version of a second one, once it is moved, needs that moved too;
one that asks for the old version must be moved before it. Packages that need each other are a unit.
In an order in which each unit comes after those it needs, every head is a mixture that is admitted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

Unit = tuple[str, ...]
"""Packages that can only be moved together, by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Moves:
    """What can be moved.

    Attributes:
        units: In an order in which each comes after those it needs.
        needs: The units that must be moved for a unit to be, directly or not.
        suspects: Those that may well be at fault.
        groups: The units in stretches that are searched as one at first: each ends with a
            suspect, but for the last one, maybe.
    """

    units: tuple[Unit, ...]
    needs: Mapping[Unit, frozenset[Unit]]
    suspects: frozenset[Unit]
    groups: tuple[tuple[Unit, ...], ...]

    def closed(self, units: Iterable[Unit]) -> frozenset[Unit]:
        """Return units with all that they need."""
        found = frozenset(units)
        return found.union(*(self.needs[unit] for unit in found))

    def dependents(self, units: Collection[Unit]) -> frozenset[Unit]:
        """Return units with all that need one of them."""
        wanted = frozenset(units)
        return wanted | {unit for unit in self.units if self.needs[unit] & wanted}

    def ordered(self, units: Iterable[Unit]) -> tuple[Unit, ...]:
        """Return units in order."""
        wanted = frozenset(units)
        return tuple(unit for unit in self.units if unit in wanted)


def moves_of(
    packages: Collection[str],
    needs: Mapping[str, Collection[str]],
    *,
    suspects: Collection[str] = (),
    users: Mapping[str, int] | None = None,
) -> Moves:
    """Return what can be moved.

    Args:
        packages: The packages that differ.
        needs: Those that must be moved for one to be, by its name.
        suspects: Packages that may well be at fault: they come first, one by one.
        users: How many packages use each one; what is used by few comes first. A new package
            says which old ones it cannot be with, an old one knows nothing of new ones.
    """
    reach = {name: _reach(name, needs) for name in packages}
    unit_of = {
        name: tuple(sorted({name, *(other for other in reach[name] if name in reach[other])}))
        for name in packages
    }
    wants = {
        unit: frozenset(unit_of[other] for name in unit for other in reach[name]) - {unit}
        for unit in unit_of.values()
    }
    count = users or {}

    def rank(unit: Unit) -> tuple[bool, int, Unit]:
        return unit not in chosen, min(count.get(name, 0) for name in unit), unit

    chosen = {unit for unit in wants if not suspects or not set(unit).isdisjoint(suspects)}
    order: list[Unit] = []
    while len(order) < len(wants):
        ready = [unit for unit in wants if unit not in order and wants[unit] <= set(order)]
        order.append(min(ready, key=rank))
    return Moves(
        units=tuple(order),
        needs=wants,
        suspects=frozenset(chosen),
        groups=_groups(order, chosen),
    )


def _reach(name: str, needs: Mapping[str, Collection[str]]) -> set[str]:
    """Return the packages that one needs, directly or not."""
    found: set[str] = set()
    left = [name]
    while left:
        for other in needs.get(left.pop(), ()):
            if other not in found:
                found.add(other)
                left.append(other)
    return found


def _groups(order: list[Unit], chosen: set[Unit]) -> tuple[tuple[Unit, ...], ...]:
    """Return stretches of an order, each with a chosen unit at its end, but maybe the last."""
    groups: list[tuple[Unit, ...]] = []
    stretch: list[Unit] = []
    for unit in order:
        stretch.append(unit)
        if unit in chosen:
            groups.append(tuple(stretch))
            stretch = []
    return (*groups, tuple(stretch)) if stretch else tuple(groups)
