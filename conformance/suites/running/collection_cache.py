"""A cache of collections: a suite is not collected again in a cell where nothing changed."""

from __future__ import annotations

import hashlib
from functools import cached_property
from statistics import median
from typing import TYPE_CHECKING, Final

import msgspec

from conformance.cache_folder import CacheFolder
from conformance.engine.input_files import are_unchanged
from conformance.files import MALFORMED
from conformance.suites.running.collection import Collection
from conformance.suites.running.session_info import FORKED

if TYPE_CHECKING:
    from pathlib import Path

    from conformance.engine.job import Finished, Job, PlannedCell
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
        self._entries = CacheFolder(cache / FOLDER)
        self._fresh = fresh

    def known(self, suite: Suite, planned: PlannedCell) -> Collection | None:
        """Return what was collected before, None if that is not known."""
        if self._fresh or not _may_be_kept(planned):
            return None
        before = self._read(suite, planned)
        return before if before is not None and are_unchanged(before.inputs) else None

    def forked(self, suite: Suite, planned: PlannedCell) -> bool | None:
        """Return whether workers were forked in a cell before, None if that is not known."""
        before = self._read(suite, planned)
        return None if before is None else before.told.get("workers") == FORKED

    def _read(self, suite: Suite, planned: PlannedCell) -> Collection | None:
        content = self._entries.read(self._path(suite, planned))
        if content is None:
            return None
        try:
            return msgspec.json.decode(content, type=Collection)
        except MALFORMED:  # written by another version
            return None

    def keep(self, suite: Suite, planned: PlannedCell, collection: Collection) -> None:
        """Keep what was collected, unless it was not, which may be the host's fault."""
        if not collection.failure and _may_be_kept(planned):
            self._entries.write(self._path(suite, planned), msgspec.json.encode(collection))

    def _path(self, suite: Suite, planned: PlannedCell) -> Path:
        facts = (suite.hash, suite.paths, planned.cell.id, planned.cell_hash)
        digest = hashlib.sha256(repr(facts).encode("utf-8", "backslashreplace"))
        return self._entries.folder / f"{digest.hexdigest()[:32]}.json"


class Timings:
    """How long the tests of a suite took when they were run last, whatever has changed since.

    Args:
        cache: Cache folder.
        suite: The suite.
    """

    def __init__(self, cache: Path, suite: Suite) -> None:
        digest = hashlib.sha256(repr(suite.paths).encode("utf-8", "backslashreplace"))
        self._entries = CacheFolder(cache / FOLDER)
        self._path = cache / FOLDER / f"seconds-{digest.hexdigest()[:32]}.json"
        self._learned: dict[str, float] = {}

    @cached_property
    def _known(self) -> dict[str, float]:
        content = self._entries.read(self._path)
        try:
            return {} if content is None else msgspec.json.decode(content, type=dict[str, float])
        except MALFORMED:  # written by another version
            return {}

    @cached_property
    def _usual(self) -> float:
        return median(self._known.values()) if self._known else 1.0

    def of(self, job: Job) -> float:
        """Return how long a test takes, in seconds; what is not known takes as long as others."""
        return self._known.get(job.case.name, self._usual)

    def learn(self, finished: Finished) -> None:
        """Take how long a test took."""
        if took := finished.seconds.get("job"):
            self._learned[finished.job.case.name] = round(took, 4)

    def keep(self) -> None:
        """Keep what was learned."""
        if self._learned:
            self._entries.write(self._path, msgspec.json.encode(self._known | self._learned))


def _may_be_kept(planned: PlannedCell) -> bool:
    cell = planned.cell
    return bool(planned.cell_hash) and cell.interpreter is None and not cell.place.real
