"""Axes that a search varies: their points, the cells of the points, and packages that differ."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from packaging.version import Version

from conformance.cells.releases import is_nightly
from conformance.engine.job import PlannedCell
from conformance.errors import InfrastructureError, UsageError
from conformance.model.run import Exclusion

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from conformance.cells.cell import Cell
    from conformance.cells.lock import Lock
    from conformance.engine.workers.preparation import Preparation

JAX = "jax"
CONFIG = "config:"
FLAG = "xla:"
RESTART = "the same command goes on where it was"
"""Advice with errors that may be temporary: the log of a search is kept."""
ABSENT: Final = "none"
"""The version of a package that an environment does not have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AxisPoint:
    """A point on an axis.

    Attributes:
        label: Name of the point: a release, a version or a value.
        cell: The cell in which the target is tried.
    """

    label: str
    cell: Cell


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchAxis:
    """An axis from one endpoint to the other.

    Attributes:
        name: The package or the option that is varied.
        points: Points in order, both ends included.
        refused: Nightlies that cannot be installed, each with the reason.
    """

    name: str
    points: Sequence[AxisPoint]
    refused: Mapping[str, str] = field(default_factory=dict)


def make_package_points(cell: Cell, package: str, versions: Sequence[str]) -> list[AxisPoint]:
    """Return the points of an axis of a package: a cell with each version of it.

    Args:
        cell: The cell.
        package: The package.
        versions: Versions of the package, in order.
    """
    # The cell may pin the package itself; two pins of one package have no solution.
    pins = tuple(pin for pin in cell.pins if not pin.startswith(f"{package}=="))
    return [
        AxisPoint(label=version, cell=replace(cell, pins=(*pins, f"{package}=={version}")))
        for version in versions
    ]


def make_option_points(cell: Cell, axis: str, values: Sequence[str]) -> list[AxisPoint]:
    """Return the points of an axis of an option: a cell with each value of it.

    Args:
        cell: The cell.
        axis: `config:NAME` for an option of jax, `xla:FLAG` for one of XLA.
        values: Values of the option, in order.
    """
    if axis.startswith(CONFIG):
        name = axis.removeprefix(CONFIG)
        others = tuple(item for item in cell.config if item[0] != name)
        cells = [replace(cell, config=(*others, (name, value))) for value in values]
    else:
        name = axis.removeprefix(FLAG).removeprefix("--")
        # XLA takes the last of equal flags: a value at the end overrides that of the cell.
        flags = cell.xla_flags
        cells = [replace(cell, xla_flags=(*flags, f"--{name}={value}")) for value in values]
    return [
        AxisPoint(label=value, cell=varied) for value, varied in zip(values, cells, strict=True)
    ]


def select_versions(package: str, versions: Sequence[str], ends: tuple[str, str]) -> list[str]:
    """Return the versions of a package between two ends, both included.

    Args:
        package: The package, for messages.
        versions: All its versions.
        ends: The older and the newer end.

    Raises:
        UsageError: If an end is no version of the package.
    """
    # By version and not by text: `0.6` and `0.6.0` are one version.
    known = {Version(text): text for text in versions}
    try:
        first, last = map(Version, ends)
    except ValueError as error:
        raise UsageError(f"{package}: {str(error).lower()}") from None
    for end in (first, last):
        if end not in known:
            near = ", ".join(
                known[v] for v in sorted(known, key=lambda v: _measure_distance(v, end))[:3]
            )
            raise UsageError(f"{package} {end}: no such version with wheels, expected e.g. {near}")
    return [known[version] for version in sorted(known) if first <= version <= last]


def _measure_distance(version: Version, other: Version) -> tuple[int, ...]:
    """Return the distance between two versions, part by part."""
    length = max(len(version.release), len(other.release))
    parts = ((*v.release, *[0] * (length - len(v.release))) for v in (version, other))
    return tuple(abs(a - b) for a, b in zip(*parts, strict=True))


class SearchPoints(Protocol):
    """Planned cells along an axis, each made ready when it is first used."""

    @property
    def labels(self) -> Sequence[str]:
        """Names of the points."""
        ...

    def __len__(self) -> int:
        """Return the number of points."""
        ...

    def __iter__(self) -> Iterator[PlannedCell]:
        """Return the cells in order."""
        ...

    def __getitem__(self, number: int, /) -> PlannedCell:
        """Return the cell of a point."""
        ...


class AxisCells:
    """Planned cells along an axis.

    The ends and the releases are resolved at once; releases that cannot be installed are left out.
    Nightlies are many, and each is resolved over the network, so a nightly is resolved when it is
    first tried. A nightly that cannot be installed has a cell with the reason.

    Args:
        points: The points of the axis, in order.
        prepare: Function that looks up locks.
        check: Function that raises `InfrastructureError` if the index of nightlies does not answer.

    Raises:
        UsageError: If an end cannot be installed.
        InfrastructureError: If the lock of an end cannot be resolved now.
    """

    def __init__(
        self,
        points: Sequence[AxisPoint],
        prepare: Callable[[Iterable[Cell]], Preparation],
        check: Callable[[], object],
    ) -> None:
        self._prepare = prepare
        self._check = check
        # The ends at once, also nightlies: a search without them cannot begin.
        ends = (points[0], points[-1])
        at_once = [p.cell for p in points if p in ends or not is_nightly(p.cell.release)]
        preparation = prepare(at_once)
        reasons = {entry.cell: entry.reason for entry in preparation.exclusions}
        self._planned = {planned.cell.id: planned for planned in preparation.cells}
        for end in ends:
            if end.cell.id in reasons:
                raise UsageError(f"{end.label}: cannot be an end: {reasons[end.cell.id]}")
            if failure := self._planned[end.cell.id].failure:
                raise InfrastructureError(f"{end.label}: {failure}; {RESTART}")
        self._points = [point for point in points if point.cell.id not in reasons]
        self.labels = tuple(point.label for point in self._points)
        self.locks: dict[str, Lock] = dict(preparation.locks)
        self.exclusions: list[Exclusion] = list(preparation.exclusions)

    def __len__(self) -> int:
        return len(self._points)

    def __iter__(self) -> Iterator[PlannedCell]:
        return map(self.__getitem__, range(len(self)))

    def __getitem__(self, number: int) -> PlannedCell:
        """Return the cell of a point, resolved now if it was not before.

        Raises:
            InfrastructureError: If the index of nightlies does not answer any more.
        """
        point = self._points[number]
        if point.cell.id not in self._planned:
            self._planned[point.cell.id] = self._resolve(point)
        return self._planned[point.cell.id]

    def _resolve(self, point: AxisPoint) -> PlannedCell:
        found = self._prepare([point.cell])
        self.locks.update(found.locks)
        self.exclusions += found.exclusions
        for planned in found.cells:
            if planned.failure:
                # A nightly without wheels is normal. An index that does not answer would exclude
                # all of them.
                try:
                    self._check()
                except InfrastructureError as error:
                    raise InfrastructureError(f"{error}; {RESTART}") from error
                left_out = Exclusion(case="", cell=planned.cell.id, reason=planned.failure)
                self.exclusions.append(left_out)
            return planned
        reason = found.exclusions[0].reason
        # The point keeps a cell, so that numbers of points do not shift during a search.
        versions = {"jax": point.cell.release}
        return PlannedCell(
            cell=point.cell, versions=versions, lock_hash="", cell_hash="", missing=reason
        )


class PackageMove(NamedTuple):
    """A package whose version differs.

    Attributes:
        package: Name of the package.
        before: Version in the old environment, `none` if it is absent.
        after: Version in the new environment.
    """

    package: str
    before: str
    after: str

    def __str__(self) -> str:
        """Return both versions in words."""
        return f"{self.package} {self.before} -> {self.after}"


def find_package_moves(
    before: Mapping[str, str], after: Mapping[str, str]
) -> tuple[PackageMove, ...]:
    """Return the packages whose version differs, by name.

    Args:
        before: Version by package.
        after: Version by package in the other environment.
    """
    return tuple(
        PackageMove(name, before.get(name, ABSENT), after.get(name, ABSENT))
        for name in sorted({*before, *after})
        if before.get(name) != after.get(name)
    )
