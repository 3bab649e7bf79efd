"""Environments on paper: a lock, and what its packages ask for."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from packaging.requirements import Requirement

from conformance.cells.cell import Cell
from conformance.cells.lock import MAGIC, Lock
from conformance.engine.workers.preparation import plan_cell
from conformance.triage.blame.installed import Installed
from conformance.triage.blame.mixtures import BlameEnd

if TYPE_CHECKING:
    from collections.abc import Mapping


def lock_of(pins: Mapping[str, str], requires: str = "", **headers: str) -> Lock:
    """Return a lock with a hash of its own for each package."""
    lines = [f"# {MAGIC}", "# python: 3.11", f"# requires: {requires}"]
    lines += [f"# {name}: {value}" for name, value in {"hosts": "linux-x86_64", **headers}.items()]
    lines += [f"{name}=={pins[name]} \\\n    --hash=sha256:{name}{pins[name]}" for name in pins]
    return Lock(text="\n".join(lines) + "\n", path=Path("lock.txt"))


def installed(
    requires: Mapping[str, list[str]], modules: Mapping[str, str] | None = None
) -> Installed:
    """Return what is installed, of what each package asks for."""
    return Installed(
        requires={name: tuple(map(Requirement, texts)) for name, texts in requires.items()},
        modules={name: frozenset({package}) for name, package in (modules or {}).items()},
    )


def end(
    pins: Mapping[str, str],
    requires: Mapping[str, list[str]] | None = None,
    modules: Mapping[str, str] | None = None,
) -> BlameEnd:
    """Return an end, a cell of its jax."""
    lock = lock_of(pins)
    cell = Cell(release=pins["jax"], python="3.11", devices=1)
    return BlameEnd(
        planned=plan_cell(cell, lock), lock=lock, installed=installed(requires or {}, modules)
    )
