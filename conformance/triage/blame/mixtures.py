"""Mixtures of two environments: the versions of one, and of some packages those of the other.

Their locks are put together from those of both ends, so that nothing is resolved again, and every
package has the version and the hashes of one of them.
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
from conformance.engine.preparation import plan_cell
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
"""Modules that are of no package."""
ALWAYS: Final = ("jax", "numpy")
"""Packages that every target is about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MixedCell(Cell):
    """A cell whose packages only a lock defines.

    Attributes:
        mixture: Digest of its packages, a part of its id.
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
        other: The culprit if both do not behave alike, in a sentence.
    """

    planned: PlannedCell
    stand_in: str
    other: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BlameEnd:
    """One end of a blame: an environment with its lock.

    Attributes:
        planned: Its cell.
        lock: Its lock.
        installed: The packages that are installed there.
        original: The environment that it replaces, if there is one.
        wants: The requirements of its packages that are met there.
    """

    planned: PlannedCell
    lock: Lock
    installed: Installed
    original: Original | None = None
    wants: Wants = field(init=False)

    def __post_init__(self) -> None:
        """Find the requirements that its packages have on each other."""
        object.__setattr__(self, "wants", find_wants(self.installed, self.lock))


@dataclass(slots=True, kw_only=True)
class Mixtures:
    """The mixtures of two environments, each made when it is first tried.

    Attributes:
        ends: The old environment, and the new one.
        suspects: The likely culprits, empty if they are not known.
        locks: Receives the lock of each mixture, by cell id.
        provide: Makes the environment of a mixture, if there is none yet, and returns the mixture
            with the packages that it has in addition.
        packages: The packages whose version differs, by name.
        reasons: The packages that must be moved for one to be, each with the reason.
        units: The packages as they can be moved.
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
        """Find the packages that differ, and how they can be moved.

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
        self._cells = {frozenset(): before.planned, frozenset(self.units.order): after.planned}
        self.locks |= {end.planned.cell.id: end.lock for end in self.ends}

    def cell_of(self, moved: frozenset[Unit]) -> PlannedCell:
        """Return the cell of a mixture, its environment created if necessary.

        Args:
            moved: The units with the versions of the new environment.

        Raises:
            InfrastructureError: If it cannot be made now. A mixture whose packages do not work
                together is made all the same.
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
    """Return which packages must be moved for one to be, each with the reason.

    Args:
        before: The old environment.
        after: The new one.
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
        after: The new one; both are of one Python and one platform.
        moved: The packages that have its versions.
    """
    chosen = (after, moved), (before, {*before.lock.pins, *after.lock.pins} - set(moved))
    entries: dict[str, str] = {}
    nightly: set[str] = set()
    for end, names in chosen:
        # Entries are copied with their hashes: nothing is resolved, so nothing else can change.
        entries |= {name: end.lock.entries[name] for name in names if name in end.lock.entries}
        nightly |= set(names) & set(end.lock.nightlies)
    body = "".join(entries[name] for name in sorted(entries))
    base = (after if "jax" in moved else before).planned
    cell = make_mixed_cell(base, body)
    hosts = before.lock.headers.get("hosts", "").split()
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
        body: Its packages, as a lock spells them.
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
    """Return a cell with packages of its own, and all else of a cell.

    Args:
        base: The cell.
        packages: The packages, as a lock spells them.
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

    Each group of them ends with a suspect, except the last one maybe.

    Args:
        packages: The packages that differ.
        needs: The packages that must be moved with or before each one, by its name.
        suspects: The likely culprits: they come first, one by one.
        users: How many packages use each one; those used by few come first. A new package
            excludes the old ones that it does not work with, an old one knows no new ones.
    """
    reach = {name: find_closure([name], lambda user: needs.get(user, ())) for name in packages}
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
        groups=_group_units(order, chosen),
    )


def _group_units(order: list[Unit], chosen: set[Unit]) -> tuple[tuple[Unit, ...], ...]:
    """Return stretches of an order, each with a chosen unit at its end, but maybe the last."""
    ends = (number for number, unit in enumerate(order, start=1) if unit in chosen)
    return tuple(tuple(order[a:b]) for a, b in pairwise((0, *ends, len(order))) if a < b)


def find_suspects(sources: Iterable[str], ends: tuple[BlameEnd, BlameEnd]) -> set[str]:
    """Return the packages that a target can import, directly or not; empty if that is not known.

    Args:
        sources: Its Python text, and that of every file in its folder that it may import.
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
