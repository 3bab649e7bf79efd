"""Which devices: one form for replica groups and shardings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conformance.ir.graph import Sharding

if TYPE_CHECKING:
    from conformance.ir.graph import Attribute

Groups = tuple[tuple[int, ...], ...]


def sorted_groups(groups: Attribute) -> Attribute:
    """Return replica groups in order; the members of a group keep theirs.

    An all-gather lays its parts out in the order of the members, so that one means something.

    Args:
        groups: Groups of device ids.
    """
    if not isinstance(groups, tuple):
        return groups
    return tuple(sorted(groups))  # type: ignore[type-var] # tuples of numbers


def canonical_sharding(sharding: Sharding) -> Sharding:
    """Return the one form of a sharding among those that put the same tile on every device.

    Args:
        sharding: Any sharding.

    Returns:
        Subgroups that repeat a meaning are one, devices within a replicated subgroup are in
        order, and what cuts no dimension is `replicated`, `manual` or `unreduced`.
    """
    if sharding.kind == "tuple":
        return sharding._replace(parts=tuple(canonical_sharding(part) for part in sharding.parts))
    if sharding.kind != "tiled":
        return sharding
    rank = len(sharding.tiles) - len(sharding.subgroups)
    data, groups = sharding.tiles[:rank], sharding.tiles[rank:]
    kept = [(size, what) for size, what in zip(groups, sharding.subgroups, strict=True) if size > 1]
    meanings = {what for _, what in kept}
    if all(size == 1 for size in data) and len(meanings) <= 1:
        return Sharding(kind=next(iter(meanings), "replicated"))
    if meanings != {"replicated"}:
        sizes, whats = tuple(size for size, _ in kept), tuple(what for _, what in kept)
        return sharding._replace(tiles=(*data, *sizes), subgroups=whats)
    copies = 1
    for size, _ in kept:
        copies *= size
    devices = [
        device
        for start in range(0, len(sharding.devices), copies)
        for device in sorted(sharding.devices[start : start + copies])
    ]
    return Sharding("tiled", (*data, copies), tuple(devices), ("replicated",))
