"""Packages that move together from one environment to another, in an installable order. Pure.

A package that requires another version of a second one, once it is moved, needs that moved too; one
that requires the old version must be moved before it. Packages that need each other are a unit. In
an order in which each unit comes after those it needs, every head is an installable mixture.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from conformance.search.ddmin import Units

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

Unit = tuple[str, ...]
"""Packages that can only be moved together, by name."""


def units_of(
    packages: Collection[str],
    needs: Mapping[str, Collection[str]],
    *,
    suspects: Collection[str] = (),
    users: Mapping[str, int] | None = None,
) -> Units[Unit]:
    """Return the units of some packages.

    Each group of them ends with a suspect, except the last one maybe.

    Args:
        packages: The packages that differ.
        needs: The packages that must be moved with or before each one, by its name.
        suspects: The likely culprits: they come first, one by one.
        users: How many packages use each one; those used by few come first. A new package
            excludes the old ones that it does not work with, an old one knows no new ones.
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
    return Units(
        order=tuple(order),
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
