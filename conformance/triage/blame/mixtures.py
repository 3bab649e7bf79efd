"""Mixtures of two environments: one environment, with some packages of the other.

The lock of a mixture is composed of the locks of both ends. So nothing is resolved again, and each
package has the version and the hashes of one end.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, fields
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Final

from conformance.cells.cell import Cell
from conformance.cells.lock import MAGIC, NIGHTLIES, Lock
from conformance.corpus.python_source import STANDARD_LIBRARY, find_imported_modules, parse
from conformance.engine.workers.preparation import plan_cell
from conformance.errors import InfrastructureError, UsageError
from conformance.search.axes import ABSENT, RESTART, find_package_moves
from conformance.search.ddmin import Units
from conformance.triage.blame.installed import (
    count_users,
    find_closure,
    find_wants,
    is_met,
    list_needed,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from packaging.requirements import Requirement

    from conformance.engine.job import PlannedCell
    from conformance.model.case import Case
    from conformance.search.axes import PackageMove
    from conformance.triage.blame.installed import Installed, Wants

_DIGITS: Final = 10
Unit = tuple[str, ...]
"""Packages that can only be moved together, by name."""
OWN: Final = {"conformance", "__future__", *STANDARD_LIBRARY}
"""Modules that no package of a mixture provides."""
ALWAYS: Final = ("jax", "numpy")
"""Packages that every target depends on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MixedCell(Cell):
    """A cell whose packages are defined only by a lock.

    Attributes:
        mixture: Digest of the packages, a part of the cell's id.
    """

    mixture: str

    def _install_id(self) -> str:
        # slots=True replaces the class, so that super() without arguments fails.
        return f"{super(MixedCell, self)._install_id()}-mix.{self.mixture}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Original:
    """An environment that an end replaces.

    Attributes:
        planned: The environment.
        stand_in: The name of the end, in a sentence.
        other: The culprit if both behave differently, in a sentence.
    """

    planned: PlannedCell
    stand_in: str
    other: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BlameEnd:
    """One end of a blame: an environment with its lock.

    Attributes:
        planned: Cell of the environment.
        lock: Lock of the cell.
        installed: The packages that are installed in the environment.
        original: The environment that the end replaces, if any.
        wants: The requirements of the packages that the environment meets.
    """

    planned: PlannedCell
    lock: Lock
    installed: Installed
    original: Original | None = None
    wants: Wants = field(init=False)

    def __post_init__(self) -> None:
        """Find the requirements of the packages on each other."""
        object.__setattr__(self, "wants", find_wants(self.installed, self.lock))


@dataclass(slots=True, kw_only=True)
class Mixtures:
    """The mixtures of two environments, each created when it is first tried.

    Attributes:
        ends: The old and the new environment.
        suspects: The likely culprits, empty if unknown.
        locks: Receives the lock of each mixture, by cell id.
        provide: Function that creates the environment of a mixture if it is missing, and returns
            the mixture with its additional packages.
        packages: The packages whose version differs, by name.
        reasons: The packages that must be moved before a package can be, each with the reason.
        units: Packages that can only be moved together, in order.
    """

    ends: tuple[BlameEnd, BlameEnd]
    suspects: Collection[str] = ()
    locks: dict[str, Lock]
    provide: Callable[[PlannedCell, Lock], PlannedCell]
    packages: Mapping[str, PackageMove] = field(init=False)
    reasons: Mapping[str, Mapping[str, str]] = field(init=False)
    units: Units[Unit] = field(init=False)
    _cells: dict[frozenset[Unit], PlannedCell] = field(init=False)

    def __post_init__(self) -> None:
        """Find the packages that differ, and the units in which they can be moved.

        Raises:
            UsageError: If no package differs.
        """
        before, after = self.ends
        moves = find_package_moves(before.lock.pins, after.lock.pins)
        self.packages = {move.package: move for move in moves}
        if not self.packages:
            names = f"{before.planned.cell.id} and {after.planned.cell.id}"
            raise UsageError(f"{names}: no package differs, expected ends with other versions")
        self.reasons = find_needs(before, after)
        self.units = make_units(
            tuple(self.packages),
            self.reasons,
            suspects=self.suspects,
            users=count_users(after.wants),
        )
        # The ends exist already, so no environment is created for them.
        self._cells = {frozenset(): before.planned, frozenset(self.units.order): after.planned}
        self.locks |= {end.planned.cell.id: end.lock for end in self.ends}

    def cell_of(self, moved: frozenset[Unit]) -> PlannedCell:
        """Return the cell of a mixture, its environment created if necessary.

        Args:
            moved: The units with the versions of the new environment.

        Raises:
            InfrastructureError: If it cannot be created now. A mixture whose packages do not work
                together can be created.
        """
        if moved not in self._cells:
            names = {name for unit in moved for name in unit}
            planned, lock = mix(*self.ends, names)
            self.locks[planned.cell.id] = lock
            try:
                self._cells[moved] = self.provide(planned, lock)
            except InfrastructureError as error:
                raise InfrastructureError(f"{error}; {RESTART}") from error
        return self._cells[moved]


def find_needs(before: BlameEnd, after: BlameEnd) -> dict[str, dict[str, str]]:
    """Return the packages that must be moved before a package can be, each with the reason.

    Args:
        before: The old environment.
        after: The new environment.
    """
    old, new = before.lock.pins, after.lock.pins
    names = {move.package for move in find_package_moves(old, new)}
    found: dict[str, dict[str, str]] = {name: {} for name in sorted(names)}
    for name in sorted(names):
        for end, own, others in ((after, new, old), (before, old, new)):
            for requirement in end.wants.get(name, ()):
                if requirement.name in names and not is_met(requirement, others):
                    reason = _format_conflict(f"{name} {own[name]}", requirement, others)
                    pair = name, requirement.name
                    # A new package needs its requirement moved; an old package that excludes
                    # the new version of its requirement must be moved before that.
                    mover, needed = pair if end is after else reversed(pair)
                    found[mover].setdefault(needed, reason)
    return found


def _format_conflict(package: str, requirement: Requirement, versions: Mapping[str, str]) -> str:
    installed = versions.get(requirement.name, ABSENT)
    return f"{package} asks for {requirement.name}{requirement.specifier}, not {installed}"


def mix(before: BlameEnd, after: BlameEnd, moved: Collection[str]) -> tuple[PlannedCell, Lock]:
    """Return the planned cell of a mixture, and its lock.

    Args:
        before: The old environment.
        after: The new environment, on the same Python and platform.
        moved: The packages that have the versions of the new environment.
    """
    chosen = (after, moved), (before, {*before.lock.pins, *after.lock.pins} - set(moved))
    entries: dict[str, str] = {}
    nightly: set[str] = set()
    for end, names in chosen:
        # Entries are copied with their hashes: nothing is resolved, so nothing else can change.
        entries |= {name: end.lock.entries[name] for name in names if name in end.lock.entries}
        nightly |= set(names) & set(end.lock.nightlies)
    body = "".join(entries[name] for name in sorted(entries))
    # The cell of a mixture is that of its release of jax.
    base = (after if "jax" in moved else before).planned
    cell = make_mixed_cell(base, body)
    hosts = before.lock.headers.get("hosts", "").split()
    # Wheels must exist for a host at both ends.
    both = [host for host in hosts if host in after.lock.headers.get("hosts", "").split()]
    index = after.lock.nightly_index or before.lock.nightly_index
    lock = make_lock(cell, body, both, nightlies=nightly, index=index)
    return plan_cell(cell, lock, passed=base.passed), lock


def make_lock(
    cell: MixedCell,
    body: str,
    hosts: Iterable[str],
    *,
    nightlies: Iterable[str] = (),
    index: str = "",
) -> Lock:
    """Return the lock of a mixed cell.

    Args:
        cell: The cell.
        body: Packages of the cell, in the syntax of a lock.
        hosts: Hosts that the packages have wheels for.
        nightlies: Packages that are nightlies.
        index: Index of the nightlies.
    """
    lines = [f"# {MAGIC}", f"# environment: {cell.env_id}", f"# python: {cell.python}"]
    lines += [f"# hosts: {' '.join(hosts)}"]
    if named := sorted(nightlies):
        lines += [f"# {NIGHTLIES}: {' '.join(named)}"]
    text = "\n".join(lines) + f"\n{body}"
    return Lock(text=text, path=Path(f"{cell.env_id}.txt"), nightly_index=index)


def make_mixed_cell(base: PlannedCell, packages: str) -> MixedCell:
    """Return a copy of a cell with other packages.

    Args:
        base: The cell.
        packages: The packages, in the syntax of a lock.
    """
    # The same packages on another Python are another environment.
    digest = hashlib.sha256(f"{base.cell.python}\n{packages}".encode()).hexdigest()[:_DIGITS]
    same = {field.name: getattr(base.cell, field.name) for field in fields(Cell) if field.init}
    return MixedCell(
        **same | {"release": base.release, "deps": "era", "pins": (), "mixture": digest}
    )


def make_units(
    packages: Collection[str],
    needs: Mapping[str, Collection[str]],
    *,
    suspects: Collection[str] = (),
    users: Mapping[str, int] | None = None,
) -> Units[Unit]:
    """Return the units of some packages.

    Each group of them ends with a suspect, except possibly the last group.

    Args:
        packages: The packages that differ.
        needs: The packages that must be moved with or before a package, by name of the package.
        suspects: The likely culprits: they come first, one by one.
        users: Number of users of each package; packages with few users come first. A new package
            excludes the old packages that it does not work with; an old package cannot exclude
            new packages.
    """
    reach = {name: find_closure([name], lambda user: needs.get(user, ())) for name in packages}
    unit_of = {
        # A cycle of needs, e.g. of jax and jaxlib, can only be moved as a whole: one unit.
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
        groups=_group_units(order, chosen),
    )


def _group_units(order: list[Unit], chosen: set[Unit]) -> tuple[tuple[Unit, ...], ...]:
    """Return consecutive groups of an order, each but possibly the last ending in a chosen unit."""
    ends = (number for number, unit in enumerate(order, start=1) if unit in chosen)
    return tuple(tuple(order[a:b]) for a, b in pairwise((0, *ends, len(order))) if a < b)


def find_suspects(sources: Iterable[str], ends: tuple[BlameEnd, BlameEnd]) -> set[str]:
    """Return the packages that a target can import, directly or indirectly; empty if unknown.

    Args:
        sources: Python text of the target, and of every file that it may import.
        ends: Both environments.
    """
    names: set[str] = set()
    for source in sources:
        try:
            names |= find_imported_modules(parse(source))
        except SyntaxError:
            return set()
    found = set(ALWAYS) if names else set()
    for name in names - OWN:
        packages = set().union(*(end.installed.modules.get(name, ()) for end in ends))
        if not packages:
            return set()  # a module of the user, which may import anything
        found |= packages
    wants = [end.wants for end in ends]
    return find_closure(found, lambda name: list_needed(name, *wants))


def read_sources(case: Case) -> list[str]:
    """Return the text of a case's file, and of the helpers that it may import."""
    files = [case.file, *sorted(case.file.parent.glob("_*.py"))]
    return [file.read_text("utf-8", "replace") for file in files]
