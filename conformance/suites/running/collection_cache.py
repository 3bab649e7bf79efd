"""A cache of collections, which skips collecting where nothing changed, and of test durations."""

from __future__ import annotations

import hashlib
from functools import cached_property
from statistics import median
from typing import TYPE_CHECKING, Final

import msgspec

from conformance.cache_folder import CacheFolder
from conformance.engine.input_files import are_unchanged
from conformance.engine.job import RecordedJob
from conformance.files import MALFORMED
from conformance.suites.running.collection import FORKED, Collection

if TYPE_CHECKING:
    from pathlib import Path

    from conformance.engine.job import FinishedJob, Job, PlannedCell
    from conformance.suites.suite import Suite

FOLDER: Final = "suites"
"""Folder of collections within the cache."""


class CollectionCache:
    """Collections of cells, stored below the cache folder.

    Args:
        cache: Cache folder.
        fresh: Whether earlier collections are ignored.
    """

    def __init__(self, cache: Path, *, fresh: bool = False) -> None:
        self._entries = CacheFolder(cache / FOLDER)
        self._fresh = fresh

    def load(self, suite: Suite, planned: PlannedCell) -> Collection | None:
        """Return the earlier collection of a cell, None unless it is still valid."""
        if self._fresh or not _is_cacheable(planned):
            return None
        before = self._read(suite, planned)
        return before if before is not None and are_unchanged(before.inputs) else None

    def has_forked(self, suite: Suite, planned: PlannedCell) -> bool:
        """Say whether workers are known to have been forked in a cell before."""
        before = self._read(suite, planned)
        return before is not None and before.facts.get("workers") == FORKED

    def _read(self, suite: Suite, planned: PlannedCell) -> Collection | None:
        content = self._entries.read(self._locate(suite, planned))
        if content is None:
            return None
        try:
            return msgspec.json.decode(content, type=Collection)
        except MALFORMED:  # written by another version
            return None

    def save(self, suite: Suite, planned: PlannedCell, collection: Collection) -> None:
        """Store a collection, unless it failed: a failure may be the host's fault."""
        if not collection.failure and _is_cacheable(planned):
            self._entries.write(self._locate(suite, planned), msgspec.json.encode(collection))

    def _locate(self, suite: Suite, planned: PlannedCell) -> Path:
        # The hash of the cell too: the same id may be another environment after a new lock.
        facts = (suite.hash, suite.paths, planned.cell.id, planned.cell_hash)
        return self._entries.folder / f"{_hash(facts)}.json"


class TestTimings:
    """Durations of the tests of a suite in their last run, regardless of later changes.

    Args:
        cache: Cache folder.
        suite: Suite whose tests are timed.
    """

    __test__ = False  # keeps pytest from collecting it as a test class

    def __init__(self, cache: Path, suite: Suite) -> None:
        self._entries = CacheFolder(cache / FOLDER)
        self._path = cache / FOLDER / f"seconds-{_hash(suite.paths)}.json"
        self._measured: dict[str, float] = {}

    @cached_property
    def _durations(self) -> dict[str, float]:
        content = self._entries.read(self._path)
        try:
            return {} if content is None else msgspec.json.decode(content, type=dict[str, float])
        except MALFORMED:  # written by another version
            return {}

    @cached_property
    def _median(self) -> float:
        return median(self._durations.values()) if self._durations else 1.0

    def estimate(self, job: Job) -> float:
        """Return the duration of a test in seconds; the median of all for an unknown test."""
        return self._durations.get(job.case.name, self._median)

    def learn(self, finished: FinishedJob | RecordedJob) -> None:
        """Take the duration of a test."""
        ended = finished.record if isinstance(finished, RecordedJob) else finished
        if seconds := ended.seconds.get("job"):
            self._measured[finished.job.case.name] = round(seconds, 4)

    def save(self) -> None:
        """Store the durations that were learned."""
        if self._measured:
            # Durations of tests that were not run this time are kept.
            self._entries.write(self._path, msgspec.json.encode(self._durations | self._measured))


def _hash(facts: object) -> str:
    # File names that are no UTF-8 have surrogates, which the encoder refuses otherwise.
    return hashlib.sha256(repr(facts).encode("utf-8", "backslashreplace")).hexdigest()[:32]


def _is_cacheable(planned: PlannedCell) -> bool:
    # The user's own environment and an accelerator may change without a change of the hash.
    cell = planned.cell
    return bool(planned.cell_hash) and cell.interpreter is None and not cell.place.real
