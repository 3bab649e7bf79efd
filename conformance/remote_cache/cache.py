"""The shared cache: actions and contents in an object store, each verified when it is read.

As in Bazel, an *action* is a record under a key of everything that it depends on, and a *content*
is an artifact under its digest. Nothing here raises for a cache that is dead, slow or damaged: an
entry that cannot be read is missing, and one that cannot be written is not written.
"""

from __future__ import annotations

import os
import threading
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from conformance.remote_cache.entry import (
    LARGEST_STORED,
    SCHEMA,
    DamagedEntryError,
    Namespace,
    OversizedEntryError,
    decode_entry,
    encode_entry,
    make_path,
    parse_path,
)
from conformance.remote_cache.location import parse_cache_url
from conformance.remote_cache.object_store import ObjectStore, Oversized

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from concurrent.futures import Future

    from conformance.remote_cache.object_store import StoredObject


MOST_PENDING: Final = 512
"""Uploads that wait at the same time, which bounds the memory that they take."""


class RemoteCache:
    """A shared cache, usable from several threads; a pickled one opens again in its new process.

    Args:
        url: URL as `conformance.remote_cache.location.parse_cache_url` returns it.
        write: Whether entries are added. Without it every `put` does nothing.

    Raises:
        UsageError: If obstore is missing, or the environment lacks settings of the provider.
    """

    def __init__(self, url: str, *, write: bool = False) -> None:
        self.url = url
        self.write = write
        self.damaged: dict[str, str] = {}
        """Why an entry is damaged, by its path."""
        self._store = ObjectStore(url, write=write)
        self._stored: set[str] = set()
        self._uploads: list[Future[bool]] = []
        self._pending = threading.BoundedSemaphore(MOST_PENDING)

    def __reduce__(self) -> tuple[Any, ...]:
        return open_remote_cache, (self.url, self.write)

    @property
    def failure(self) -> str:
        """Why the cache is not asked any more, empty if it works."""
        return self._store.breaker.reason

    @property
    def last_failure(self) -> str:
        """Why the last failed request failed, empty if none has failed."""
        return self._store.breaker.reason or self._store.breaker.last_failure

    def get_action(self, key: str) -> bytes | None:
        """Return an action, None if it is missing, damaged or cannot be read."""
        return dict(self.get_actions([key])).get(key)

    def get_actions(self, keys: Iterable[str]) -> Iterator[tuple[str, bytes]]:
        """Yield the actions that exist, with their keys, in any order.

        Args:
            keys: Keys of the actions.
        """
        return self._get_all(Namespace.ACTIONS, keys)

    def get_content(self, digest: str) -> bytes | None:
        """Return a content, None if it is missing, damaged or cannot be read.

        Args:
            digest: 32 to 64 hexadecimal digits of its SHA-256.
        """
        return dict(self.get_contents([digest])).get(digest)

    def get_contents(self, digests: Iterable[str]) -> Iterator[tuple[str, bytes]]:
        """Yield the contents that exist, with their digests, in any order.

        Args:
            digests: See `get_content`.
        """
        return self._get_all(Namespace.CONTENT, digests)

    def put_action(self, key: str, data: bytes) -> bool:
        """Store an action unless it exists; return whether it exists.

        Args:
            key: Parts of lower-case letters, digits and `-`, separated by `/`.
            data: Its content; the contents that it names must be stored before.
        """
        return self.put_actions({key: data}) == {key}

    def put_actions(self, actions: Mapping[str, bytes]) -> set[str]:
        """Store actions; return the keys of those that exist then.

        Args:
            actions: Content by key.
        """
        return self._put_all(Namespace.ACTIONS, actions)

    def put_content(self, digest: str, data: bytes) -> bool:
        """Store a content unless it exists; return whether it exists.

        Args:
            digest: See `get_content`.
            data: The content.
        """
        return self.put_contents({digest: data}) == {digest}

    def put_contents(self, contents: Mapping[str, bytes]) -> set[str]:
        """Store contents; return the digests of those that exist then.

        Args:
            contents: Content by digest.
        """
        return self._put_all(Namespace.CONTENT, contents)

    def upload(
        self, key: str, data: bytes, digests: Iterable[str], read: Callable[[str], bytes]
    ) -> None:
        """Store an action and the contents that it names, in the background; `flush` waits.

        The end of the process waits, too, e.g. that of a search.

        Args:
            key: See `put_action`.
            data: Content of the action.
            digests: Digests of the contents that it names.
            read: Returns a content by its digest.
        """
        if self.write and not self.failure:
            # Encoded now: compressed, thousands of records take little memory while they wait.
            try:
                entry = encode_entry(Namespace.ACTIONS, key, data)
            except OversizedEntryError:
                return
            self._pending.acquire()
            upload = self._store.submit(self._upload, key, entry, digests, read)
            upload.add_done_callback(lambda _: self._pending.release())
            self._uploads.append(upload)

    def note_stored(self, digests: Iterable[str]) -> None:
        """Note that contents are stored, because another host has put them there.

        Args:
            digests: Digests of the contents.
        """
        self._stored.update(make_path(Namespace.CONTENT, digest) for digest in digests)

    def flush(self) -> int:
        """Wait for all uploads; return how many actions were stored.

        A cache that has died meanwhile ends the wait, as the circuit breaker opens.
        """
        uploads, self._uploads = self._uploads, []
        return sum(upload.result() for upload in uploads)

    def list_actions(self, folder: str) -> set[str]:
        """Return the keys of the undamaged actions in a folder.

        Args:
            folder: The keys up to their last `/`.
        """
        found = self._store.list(f"v{SCHEMA}/{Namespace.ACTIONS}/{folder}")
        parsed = (parse_path(one.path) for one in found or () if one.path not in self.damaged)
        return {place[1] for place in parsed if place is not None}

    def list_objects(self) -> list[StoredObject]:
        """Return all objects of this schema version."""
        return self._store.list(f"v{SCHEMA}") or []

    def delete(self, paths: Sequence[str]) -> bool:
        """Delete objects, whether entries are added or not; return whether they are gone.

        Args:
            paths: Paths below the URL.
        """
        # As many as S3 deletes in one request.
        parts = [paths[start : start + 1000] for start in range(0, len(paths), 1000)]
        return all(self._store.delete(part) for part in parts)

    def remove_action(self, key: str) -> None:
        """Remove an action that turned out to be wrong, e.g. the record of a flaky job."""
        if self.write:
            self.delete([make_path(Namespace.ACTIONS, key)])

    def _upload(
        self, key: str, entry: bytes, digests: Iterable[str], read: Callable[[str], bytes]
    ) -> bool:
        # The contents first: an action must not name a content that the cache lacks.
        for digest in digests:
            path = make_path(Namespace.CONTENT, digest)
            if path in self._stored or self.failure:
                continue
            try:
                content = encode_entry(Namespace.CONTENT, digest, read(digest))
            except Exception:  # noqa: BLE001 - damaged or too large: its action is not stored
                return False
            if not self._put(path, content):
                return False
        return self._put(make_path(Namespace.ACTIONS, key), entry)

    def _get_all(self, namespace: Namespace, keys: Iterable[str]) -> Iterator[tuple[str, bytes]]:
        paths = {make_path(namespace, key): key for key in dict.fromkeys(keys)}
        for path, found in self._store.get_all(list(paths), LARGEST_STORED):
            if isinstance(found, Oversized):
                self.damaged[path] = f"has {found.size} bytes, expected at most {LARGEST_STORED}"
                continue
            try:
                content = decode_entry(namespace, paths[path], found)
            except DamagedEntryError as error:
                self.damaged[path] = str(error)
                continue
            self._stored.add(path)
            yield paths[path], content

    def _put_all(self, namespace: Namespace, contents: Mapping[str, bytes]) -> set[str]:
        if not self.write:
            return set()

        def put(key: str, data: bytes) -> bool:
            try:
                entry = encode_entry(namespace, key, data)
            except OversizedEntryError:
                return False
            return self._put(make_path(namespace, key), entry)

        stored = {key: self._store.submit(put, key, data) for key, data in contents.items()}
        return {key for key, is_stored in stored.items() if is_stored.result()}

    def _put(self, path: str, entry: bytes) -> bool:
        """Store an entry once; a damaged one is replaced."""
        if path in self._stored:
            return True
        is_stored = self._store.put(path, entry, overwrite=path in self.damaged)
        if is_stored:
            self._stored.add(path)
        return is_stored


@cache
def _open_in_process(_pid: int, url: str, write: bool) -> RemoteCache:
    return RemoteCache(url, write=write)


def open_remote_cache(url: str, write: bool = False) -> RemoteCache:
    """Return the cache at a URL, the same object in the whole process.

    Args:
        url: The URL, which may come from a file of a run.
        write: Whether entries are added.

    Raises:
        UsageError: If the URL is malformed, obstore is missing, or the environment lacks settings
            of the provider.
    """
    # By process: threads do not survive a fork.
    return _open_in_process(os.getpid(), parse_cache_url(url, "cache"), write)
