"""Collections that are kept: a suite is not collected again in a cell where nothing changed."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final

import msgspec

from conformance.files import write_atomically
from conformance.suites.collection import Collection

if TYPE_CHECKING:
    from pathlib import Path

    from conformance.engine.job import PlannedCell
    from conformance.suites.suite import Suite

FOLDER: Final = "suites"
"""Folder of the cache that keeps collections."""


class Collections:
    """Collections of cells, kept below the cache folder.

    Args:
        cache: Cache folder.
        fresh: Whether what is kept does not count.
    """

    def __init__(self, cache: Path, *, fresh: bool = False) -> None:
        self._folder = cache / FOLDER
        self._fresh = fresh

    def known(self, suite: Suite, planned: PlannedCell) -> Collection | None:
        """Return what was collected before, None if that is not known."""
        if self._fresh or not _may_be_kept(planned):
            return None
        try:
            return msgspec.json.decode(self._path(suite, planned).read_bytes(), type=Collection)
        except (OSError, ValueError):
            return None

    def keep(self, suite: Suite, planned: PlannedCell, collection: Collection) -> None:
        """Keep what was collected, unless it was not, which may be the host's fault.

        Raises:
            InfrastructureError: If the disk refuses.
        """
        if not collection.failure and _may_be_kept(planned):
            write_atomically(self._path(suite, planned), msgspec.json.encode(collection))

    def _path(self, suite: Suite, planned: PlannedCell) -> Path:
        facts = (suite.hash, suite.paths, planned.cell.id, planned.cell_hash)
        digest = hashlib.sha256(repr(facts).encode("utf-8", "backslashreplace"))
        return self._folder / f"{digest.hexdigest()[:32]}.json"


def _may_be_kept(planned: PlannedCell) -> bool:
    cell = planned.cell
    return bool(planned.cell_hash) and cell.interpreter is None and not cell.place.real
