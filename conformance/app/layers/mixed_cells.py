"""Cells that mix two releases: the Python code of one with the jaxlib of the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.version import Version

from conformance.cells.provision import provision
from conformance.cells.source_tree import provide_installed_sources
from conformance.search.axes import JAX
from conformance.triage.commits.commit_cells import plan_sources

if TYPE_CHECKING:
    from pathlib import Path

    from conformance.cells.lock import Lock
    from conformance.engine.job import PlannedCell


def plan_mixed(
    sources: PlannedCell, planned: PlannedCell, locks: dict[str, Lock], cache: Path
) -> PlannedCell:
    """Return a cell with the installed jax of another one.

    Args:
        sources: Cell whose jax it has.
        planned: Cell that has everything else.
        locks: Lock of each cell, by cell id; receives that of the new one.
        cache: Folder of the cache.

    Raises:
        InfrastructureError: If an environment cannot be provided, or the disk refuses.
    """
    python = provision(sources.cell, lock=locks[sources.cell.id], cache=cache).python
    (installed,) = python.parent.parent.glob(f"lib/python*/site-packages/{JAX}")
    newest = max((sources.versions[JAX], planned.versions["jaxlib"]), key=Version)
    folder = provide_installed_sources(installed, newest, cache)
    mixed = plan_sources(planned, JAX, f"release.{sources.release}", folder, newest)
    locks[mixed.cell.id] = locks[planned.cell.id]
    return mixed
