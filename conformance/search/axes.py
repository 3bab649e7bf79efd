"""Axes: the releases, versions of a package or values of an option that a search varies. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from packaging.version import Version

from conformance.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from conformance.cells.cell import Cell

JAX = "jax"
CONFIG = "config:"
FLAG = "xla:"


@dataclass(frozen=True, slots=True, kw_only=True)
class AxisPoint:
    """A point on an axis.

    Attributes:
        label: Its name: a release, a version, a value.
        cell: The cell in which the target is tried.
    """

    label: str
    cell: Cell


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchAxis:
    """An axis from one endpoint to the other.

    Attributes:
        name: The package or the option that is varied.
        points: Its points in order, both ends included.
        refused: Nightlies that cannot be installed, each with the reason.
    """

    name: str
    points: Sequence[AxisPoint]
    refused: Mapping[str, str] = field(default_factory=dict)


def package_points(cell: Cell, package: str, versions: Sequence[str]) -> list[AxisPoint]:
    """Return the points of an axis of a package: a cell with each version of it.

    Args:
        cell: The cell.
        package: The package.
        versions: Its versions, in order.
    """
    pins = tuple(pin for pin in cell.pins if not pin.startswith(f"{package}=="))
    return [
        AxisPoint(label=version, cell=replace(cell, pins=(*pins, f"{package}=={version}")))
        for version in versions
    ]


def option_points(cell: Cell, axis: str, values: Sequence[str]) -> list[AxisPoint]:
    """Return the points of an axis of an option: a cell with each value of it.

    Args:
        cell: The cell.
        axis: `config:NAME` for an option of jax, `xla:FLAG` for one of XLA.
        values: Its values, in order.
    """
    if axis.startswith(CONFIG):
        name = axis.removeprefix(CONFIG)
        others = tuple(item for item in cell.config if item[0] != name)
        cells = [replace(cell, config=(*others, (name, value))) for value in values]
    else:
        name = axis.removeprefix(FLAG).removeprefix("--")
        flags = cell.xla_flags
        cells = [replace(cell, xla_flags=(*flags, f"--{name}={value}")) for value in values]
    return [AxisPoint(label=value, cell=one) for value, one in zip(values, cells, strict=True)]


def versions_between(package: str, versions: Sequence[str], ends: tuple[str, str]) -> list[str]:
    """Return the versions of a package from one end to the other, both included.

    Args:
        package: The package, for messages.
        versions: All its versions.
        ends: The older and the newer end.

    Raises:
        UsageError: If an end is no version of the package.
    """
    known = {Version(text): text for text in versions}
    try:
        first, last = map(Version, ends)
    except ValueError as error:
        raise UsageError(f"{package}: {str(error).lower()}") from None
    for end in (first, last):
        if end not in known:
            near = ", ".join(known[v] for v in sorted(known, key=lambda v: _distance(v, end))[:3])
            raise UsageError(f"{package} {end}: no such version with wheels, expected e.g. {near}")
    return [known[version] for version in sorted(known) if first <= version <= last]


def _distance(one: Version, other: Version) -> tuple[int, ...]:
    """Return how far two versions are from each other, part by part."""
    length = max(len(one.release), len(other.release))
    parts = ((*version.release, *[0] * (length - len(version.release))) for version in (one, other))
    return tuple(abs(a - b) for a, b in zip(*parts, strict=True))
