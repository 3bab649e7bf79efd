"""Maintenance of a cache of actions and contents, shared or local: statistics and pruning.

Pruning marks and sweeps. The oldest actions go, by the time of their last write, and then the
contents that no remaining action names. Removing contents by age, too, would be simpler, but a
content is often older than the actions that name it: two releases with the same value share it.
Marking it on each use, as Bazel's servers do, needs write access, which readers do not have.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Final, Protocol

import msgspec

from conformance.errors import InfrastructureError
from conformance.files import MALFORMED
from conformance.remote_cache.entry import Namespace, make_path, parse_path

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from conformance.remote_cache.cache import RemoteCache

DAY: Final = 86_400.0
GRACE: Final = DAY
"""Seconds for which a content is kept without an action: an upload stores it before its action."""


@dataclass(frozen=True, slots=True)
class CacheEntry:
    """An entry of a cache.

    Attributes:
        namespace: Its namespace.
        key: Its key, of a content its digest.
        path: Its path in the cache.
        size: Bytes that it takes.
        modified: Time of its last write, in seconds since the epoch.
    """

    namespace: Namespace
    key: str
    path: str
    size: int
    modified: float


class EntryStore(Protocol):
    """A cache that can be maintained. Its methods raise InfrastructureError."""

    name: str
    """Its URL or folder."""

    def list_entries(self) -> list[CacheEntry]:
        """Return all entries."""
        ...

    def read_names(
        self, actions: Sequence[CacheEntry]
    ) -> Iterator[tuple[CacheEntry, frozenset[str]]]:
        """Yield each undamaged action with the digests that it names, in the given order."""
        ...

    def find_damaged(self, entries: Sequence[CacheEntry]) -> dict[str, str]:
        """Return why entries are damaged, by path."""
        ...

    def delete(self, paths: Sequence[str]) -> None:
        """Delete entries."""
        ...


class _NamingRecord(msgspec.Struct):
    """The part of a record that names contents."""

    artifacts: dict[str, str] = {}


_RECORDS: Final = msgspec.json.Decoder(_NamingRecord)


def read_digests(content: bytes) -> frozenset[str]:
    """Return the digests that an action names, nothing for one that is malformed.

    Args:
        content: Lines of records.
    """
    try:
        records = _RECORDS.decode_lines(content)
    except MALFORMED:
        return frozenset()
    return frozenset(chain.from_iterable(record.artifacts.values() for record in records))


def select_unneeded(
    store: EntryStore, *, now: float, unused_days: float | None, largest: float | None
) -> list[CacheEntry]:
    """Return the entries to be pruned, the oldest first.

    Args:
        store: The cache.
        now: The current time, in seconds since the epoch.
        unused_days: Days after which an action goes, None for no limit.
        largest: Bytes of the cache above which its oldest actions go, None for no limit.
    """
    entries = store.list_entries()
    contents = {one.key: one for one in entries if one.namespace is Namespace.CONTENT}
    actions = [one for one in entries if one.namespace is Namespace.ACTIONS]
    actions.sort(key=lambda one: one.modified, reverse=True)
    oldest = now - unused_days * DAY if unused_days is not None else float("-inf")
    recent = [one for one in actions if one.modified >= oldest]
    unneeded, total = actions[len(recent) :], 0
    needed: set[str] = set()
    for action, names in store.read_names(recent):
        new = names - needed
        total += action.size + sum(contents[name].size for name in new if name in contents)
        if largest is not None and total > largest:
            # This one and all older ones: a smaller one further back is older still.
            unneeded = actions[actions.index(action) :]
            break
        needed |= new
    unneeded += (
        one for one in contents.values() if one.key not in needed and one.modified < now - GRACE
    )
    return sorted(unneeded, key=lambda one: one.modified)


class SharedEntries:
    """The entries of a shared cache.

    Args:
        remote: The shared cache.
    """

    def __init__(self, remote: RemoteCache) -> None:
        self.name = remote.url
        self._remote = remote

    def list_entries(self) -> list[CacheEntry]:
        """Return all entries; other objects below the URL are left alone.

        Raises:
            InfrastructureError: If they cannot be listed.
        """
        found = []
        for one in self._remote.list_objects():
            place = parse_path(one.path)
            if place is not None:
                modified = one.modified.timestamp()
                found.append(CacheEntry(*place, one.path, one.size, modified))
        self._check()
        return found

    def read_names(
        self, actions: Sequence[CacheEntry]
    ) -> Iterator[tuple[CacheEntry, frozenset[str]]]:
        """Yield each undamaged action with the digests that it names, in the given order.

        Raises:
            InfrastructureError: If the cache cannot be read.
        """
        by_key = {one.key: one for one in actions}
        for key, content in self._remote.get_actions(by_key):
            yield by_key[key], read_digests(content)
        # What could not be read must not count as unneeded.
        self._check()

    def find_damaged(self, entries: Sequence[CacheEntry]) -> dict[str, str]:
        """Return why entries are damaged, by path.

        Raises:
            InfrastructureError: If the cache cannot be read.
        """
        reads: dict[Namespace, Callable[[Iterable[str]], Iterator[tuple[str, bytes]]]] = {
            Namespace.ACTIONS: self._remote.get_actions,
            Namespace.CONTENT: self._remote.get_contents,
        }
        for namespace, read in reads.items():
            for _ in read(one.key for one in entries if one.namespace is namespace):
                pass
        self._check()
        paths = {make_path(one.namespace, one.key) for one in entries}
        return {path: why for path, why in self._remote.damaged.items() if path in paths}

    def delete(self, paths: Sequence[str]) -> None:
        """Delete entries.

        Raises:
            InfrastructureError: If the cache refuses.
        """
        is_done = self._remote.delete(paths)
        self._check()
        if not is_done:
            raise InfrastructureError(f"{self.name}: entries cannot be deleted; check permissions")

    def _check(self) -> None:
        # Of any request, also of a cache that works again: what was not read is not unneeded.
        if self._remote.last_failure:
            raise InfrastructureError(f"{self.name}: cannot be read: {self._remote.last_failure}")
