"""What is varied between both ends: releases, versions of a package, values of an option. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from packaging.version import Version

from conformance.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from conformance.cells.cell import Cell

JAX = "jax"
CONFIG = "config:"
FLAG = "xla:"


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A place on an axis.

    Attributes:
        label: What it is called: a release, a version, a value.
        cell: The cell.
    """

    label: str
    cell: Cell


def package_points(cell: Cell, package: str, versions: Sequence[str]) -> list[Point]:
    """Return a cell with each version of a package.

    Args:
        cell: The cell.
        package: The package.
        versions: Its versions, in order.
    """
    pins = tuple(pin for pin in cell.pins if not pin.startswith(f"{package}=="))
    return [
        Point(label=version, cell=replace(cell, pins=(*pins, f"{package}=={version}")))
        for version in versions
    ]


def option_points(cell: Cell, axis: str, values: Sequence[str]) -> list[Point]:
    """Return a cell with each value of an option.

    Args:
        cell: The cell.
        axis: `config:NAME` for one of jax, `xla:FLAG` for one of XLA.
        values: Its values, in order.
    """
    set_: Callable[[str], Cell]
    if axis.startswith(CONFIG):
        name = axis.removeprefix(CONFIG)
        others = tuple(item for item in cell.config if item[0] != name)
        set_ = lambda value: replace(cell, config=(*others, (name, value)))  # noqa: E731
    else:
        name = axis.removeprefix(FLAG).removeprefix("--")
        set_ = lambda value: replace(cell, xla_flags=(*cell.xla_flags, f"--{name}={value}"))  # noqa: E731
    return [Point(label=value, cell=set_(value)) for value in values]


def between(package: str, versions: Sequence[str], ends: tuple[str, str]) -> list[str]:
    """Return the versions of a package from one end to the other, both included.

    Args:
        package: The package, for messages.
        versions: Every version there is.
        ends: The older and the newer end.

    Raises:
        UsageError: If an end is no version, or there is none of it.
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
