"""The results in the local and the shared cache: statistics, pruning, verification."""

from __future__ import annotations

import random
import time
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from conformance.app.session import Session
from conformance.cache_folder import CacheFolder
from conformance.cells.disk import format_bytes
from conformance.engine.cache.blobs import BLOBS, BlobStore, is_blob_name, open_shared_cache
from conformance.engine.cache.remote_results import COPIES
from conformance.engine.cache.verdicts import FOLDER as VERDICTS
from conformance.errors import UsageError
from conformance.files import TEMPORARY, disk_error
from conformance.remote_cache.entry import Namespace
from conformance.remote_cache.maintenance import (
    DAY,
    CacheEntry,
    SharedEntries,
    read_digests,
    select_unneeded,
)
from conformance.wording import plural

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from conformance.app.context import ProjectContext
    from conformance.remote_cache.maintenance import EntryStore

RECORDS: Final = ("results", VERDICTS, COPIES)
"""Folders of the local cache with records."""
GIGABYTE: Final = 1e9


class LocalEntries:
    """The results in the local cache folder.

    Args:
        folder: The cache folder.
    """

    def __init__(self, folder: Path) -> None:
        self.name = str(folder)
        self._folder = folder
        self._blobs = BlobStore(folder / BLOBS)

    def list_entries(self) -> list[CacheEntry]:
        """Return all entries."""
        files = [(Namespace.ACTIONS, file) for name in RECORDS for file in self._walk(name)]
        files += [(Namespace.CONTENT, file) for file in self._walk(BLOBS)]
        found = []
        for namespace, file in files:
            try:
                state = file.stat()
            except OSError:  # removed by another process
                continue
            path = str(file.relative_to(self._folder))
            key = file.name.removesuffix(".zst") if namespace is Namespace.CONTENT else path
            if namespace is Namespace.ACTIONS or is_blob_name(key):
                found.append(CacheEntry(namespace, key, path, state.st_size, state.st_mtime))
        return found

    def _walk(self, name: str) -> Iterator[Path]:
        for file in (self._folder / name).rglob("*"):
            if not file.name.startswith(TEMPORARY) and file.is_file():
                yield file

    def read_names(
        self, actions: Sequence[CacheEntry]
    ) -> Iterator[tuple[CacheEntry, frozenset[str]]]:
        """Yield each undamaged action with the digests that it names, in the given order."""
        for action in actions:
            content = self._read(action)
            if content is not None:
                yield action, read_digests(content)

    def find_damaged(self, entries: Sequence[CacheEntry]) -> dict[str, str]:
        """Return why entries are damaged, by path."""
        found = {}
        for one in entries:
            if one.namespace is Namespace.ACTIONS and self._read(one) is None:
                found[one.path] = "differs from its digest"
            elif one.namespace is Namespace.CONTENT and not self._blobs.is_intact(one.key):
                found[one.path] = "differs from its name"
        return found

    def _read(self, action: CacheEntry) -> bytes | None:
        return CacheFolder(self._folder).read(self._folder / action.path)

    def delete(self, paths: Sequence[str]) -> None:
        """Delete entries.

        Raises:
            InfrastructureError: If the disk refuses.
        """
        for path in paths:
            try:
                (self._folder / path).unlink(missing_ok=True)
            except OSError as error:
                raise disk_error(self._folder / path, error) from None


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultCaches:
    """The caches of results that a command works on.

    Attributes:
        local: The local cache.
        shared: The shared cache, None for none.
    """

    local: EntryStore
    shared: EntryStore | None

    def select(self, *, shared: bool) -> EntryStore:
        """Return the local or the shared cache.

        Args:
            shared: Whether the shared one is meant.

        Raises:
            UsageError: If there is no shared cache.
        """
        if not shared:
            return self.local
        if self.shared is None:
            raise UsageError("--shared: no shared cache is configured; give --cache URL")
        return self.shared


def open_result_caches(context: ProjectContext) -> ResultCaches:
    """Return the caches of a project.

    Args:
        context: The project.

    Raises:
        UsageError: If the location of the shared cache is malformed, or obstore is missing.
    """
    location = Session(context=context).shared_cache
    local = LocalEntries(context.cache)
    if location is None:
        return ResultCaches(local=local, shared=None)
    return ResultCaches(local=local, shared=SharedEntries(open_shared_cache(location.url)))


def measure_results(caches: ResultCaches) -> list[dict[str, Any]]:
    """Return the number, size and age of the entries of each cache and namespace, for JSON.

    Args:
        caches: The caches.

    Raises:
        InfrastructureError: If the shared cache cannot be listed.
    """
    now = time.time()
    rows = []
    for store in filter(None, (caches.local, caches.shared)):
        entries: dict[Namespace, list[CacheEntry]] = defaultdict(list)
        for one in store.list_entries():
            entries[one.namespace].append(one)
        for namespace in Namespace:
            days = [(now - one.modified) / DAY for one in entries[namespace]]
            rows.append({
                "cache": store.name,
                "namespace": str(namespace),
                "entries": len(days),
                "bytes": sum(one.size for one in entries[namespace]),
                "newest_days": round(max(min(days, default=0.0), 0.0), 2),
                "oldest_days": round(max(days, default=0.0), 2),
            })  # fmt: skip
    return rows


def render_results(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the entries of each cache in lines.

    Args:
        rows: See `measure_results`.
    """
    name = ""
    for row in rows:
        if row["cache"] != name:
            name = row["cache"]
            yield name
        noun = "entry" if row["entries"] == 1 else "entries"
        ages = f", {row['newest_days']:.0f} to {row['oldest_days']:.0f} days old"
        yield (
            f"  {row['namespace']:8} {row['entries']:>9,} {noun:7} {format_bytes(row['bytes']):>9}"
            f"{ages if row['entries'] else ''}"
        )


def prune_results(
    store: EntryStore, *, unused_days: float | None, max_gigabytes: float | None, dry_run: bool
) -> dict[str, Any]:
    """Remove the oldest results of a cache, and artifacts that none names; return them for JSON.

    Args:
        store: The cache.
        unused_days: Days without a write after which a record is removed.
        max_gigabytes: Size of the cache above which its oldest records are removed, in GB.
        dry_run: Whether to remove nothing.

    Raises:
        InfrastructureError: If the cache cannot be read, or refuses.
    """
    largest = None if max_gigabytes is None else max_gigabytes * GIGABYTE
    unneeded = select_unneeded(store, now=time.time(), unused_days=unused_days, largest=largest)
    # Records first: a reader must not find a record whose artifacts have just been removed.
    unneeded.sort(key=lambda one: one.namespace is Namespace.CONTENT)
    if not dry_run and unneeded:
        store.delete([one.path for one in unneeded])
    counts = {
        str(namespace): sum(one.namespace is namespace for one in unneeded)
        for namespace in Namespace
    }
    return {
        "cache": store.name, "dry_run": dry_run, "removed": counts,
        "freed": sum(one.size for one in unneeded),
    }  # fmt: skip


def render_pruned_results(data: Mapping[str, Any]) -> str:
    """Return what pruning results removed as a line.

    Args:
        data: See `prune_results`.
    """
    verb, freed = ("would remove", "would free") if data["dry_run"] else ("removed", "freed")
    removed = data["removed"]
    records = plural(removed[Namespace.ACTIONS], "action")
    contents = plural(removed[Namespace.CONTENT], "content")
    return (
        f"{data['cache']}: {verb} {records} and {contents}, {freed} {format_bytes(data['freed'])}"
    )


def verify_results(store: EntryStore, *, sample: int | None, delete: bool) -> dict[str, Any]:
    """Read entries of a cache and return the damaged ones for JSON.

    Args:
        store: The cache.
        sample: Number of entries to read, drawn at random; None for all.
        delete: Whether damaged entries are deleted.

    Raises:
        InfrastructureError: If the cache cannot be read, or refuses.
    """
    entries = store.list_entries()
    if sample is not None and sample < len(entries):
        entries = random.sample(entries, sample)
    damaged = store.find_damaged(entries)
    if delete and damaged:
        store.delete(sorted(damaged))
    return {
        "cache": store.name, "read": len(entries), "damaged": dict(sorted(damaged.items())),
        "deleted": delete,
    }  # fmt: skip


def render_verified(data: Mapping[str, Any]) -> Iterator[str]:
    """Yield the damaged entries in lines.

    Args:
        data: See `verify_results`.
    """
    for path, reason in data["damaged"].items():
        yield f"{path}: {reason}"
    noun = "entry" if data["read"] == 1 else "entries"
    gone = ", deleted" if data["deleted"] and data["damaged"] else ""
    yield f"{data['cache']}: {data['read']:,} {noun} read, {len(data['damaged']):,} damaged{gone}"
