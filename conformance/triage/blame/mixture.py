"""Mixtures of two environments: the versions of the one, and of some packages those of the other.

Their locks are put together from those of both ends, so that nothing is resolved anew, and every
package has the version and the hashes of one of them.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from conformance.cells.cell import Cell
from conformance.cells.lock import MAGIC, NIGHTLIES, Lock
from conformance.engine.preparation import plan_cell
from conformance.triage.blame.wants import admits, wants_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from conformance.engine.job import PlannedCell
    from conformance.triage.blame.wants import Installed, Wants

ABSENT: Final = "none"
"""The version of a package that an environment does not have."""
_DIGITS: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Mixed(Cell):
    """A cell whose packages are said by a lock alone.

    Attributes:
        mixture: Digest of its packages, which stands in its id.
    """

    mixture: str

    def _install_id(self) -> str:
        return f"{Cell._install_id(self)}-mix.{self.mixture}"  # noqa: SLF001 - its own


class Moved(NamedTuple):
    """A package whose version differs.

    Attributes:
        package: Its name.
        before: Its version in the environment that is left, `none` if it is not there.
        after: Its version in the one that is gone to.
    """

    package: str
    before: str
    after: str

    def __str__(self) -> str:
        """Return both versions in words."""
        return f"{self.package} {self.before} -> {self.after}"


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """One of both environments.

    Attributes:
        planned: Its cell.
        lock: Its lock.
        installed: What is installed there.
    """

    planned: PlannedCell
    lock: Lock
    installed: Installed
    wants: Wants = field(init=False)

    def __post_init__(self) -> None:
        """Find out what its packages ask of each other and get."""
        object.__setattr__(self, "wants", wants_of(self.installed, self.lock))


def differing(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[Moved, ...]:
    """Return the packages whose version differs, by name.

    Args:
        before: Version by package.
        after: The same of the other environment.
    """
    return tuple(
        Moved(name, before.get(name, ABSENT), after.get(name, ABSENT))
        for name in sorted({*before, *after})
        if before.get(name) != after.get(name)
    )


def needs(before: End, after: End) -> dict[str, dict[str, str]]:
    """Return which packages must be moved for one to be, each with the reason.

    Args:
        before: The environment that is left.
        after: The one that is gone to.
    """
    old, new = before.lock.pins, after.lock.pins
    names = {moved.package for moved in differing(old, new)}
    found: dict[str, dict[str, str]] = {name: {} for name in sorted(names)}
    for name in sorted(names):
        for asked in after.wants.get(name, ()):
            if asked.name in names and not admits(asked, old):
                got = old.get(asked.name, ABSENT)
                reason = f"{name} {new[name]} asks for {asked.name}{asked.specifier}, not {got}"
                found[name].setdefault(asked.name, reason)
        for asked in before.wants.get(name, ()):
            if asked.name in names and not admits(asked, new):
                got = new.get(asked.name, ABSENT)
                reason = f"{name} {old[name]} asks for {asked.name}{asked.specifier}, not {got}"
                found[asked.name].setdefault(name, reason)
    return found


def mixture(before: End, after: End, moved: Collection[str]) -> tuple[PlannedCell, Lock]:
    """Return a mixture as it is planned for, and its lock.

    Args:
        before: The environment that is left.
        after: The one that is gone to; both are of one Python and one platform.
        moved: The packages that have its versions.
    """
    chosen = (after, moved), (before, {*before.lock.pins, *after.lock.pins} - set(moved))
    entries: dict[str, str] = {}
    nightly: set[str] = set()
    for end, names in chosen:
        entries |= {name: end.lock.entries[name] for name in names if name in end.lock.entries}
        nightly |= set(names) & set(end.lock.nightlies)
    body = "".join(entries[name] for name in sorted(entries))
    base = (after if "jax" in moved else before).planned
    cell = mixed_cell(base, body)
    hosts = before.lock.headers.get("hosts", "").split()
    both = [host for host in hosts if host in after.lock.headers.get("hosts", "").split()]
    index = after.lock.nightly_index or before.lock.nightly_index
    lock = lock_of(cell, body, both, nightlies=nightly, index=index)
    return plan_cell(cell, lock, passed=base.passed), lock


def lock_of(
    cell: Mixed,
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


def mixed_cell(base: PlannedCell, packages: str) -> Mixed:
    """Return a cell with packages of its own, and all else of a cell.

    Args:
        base: The cell.
        packages: The packages, as a lock spells them.
    """
    digest = hashlib.sha256(f"{base.cell.python}\n{packages}".encode()).hexdigest()[:_DIGITS]
    same = {one.name: getattr(base.cell, one.name) for one in fields(Cell) if one.init}
    return Mixed(**same | {"release": base.release, "deps": "era", "pins": (), "mixture": digest})
