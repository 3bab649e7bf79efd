"""A content-addressed store of artifacts, compressed with zstd if they are large."""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import os
import re
import stat
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final

from conformance.cache_folder import cache_location
from conformance.compression import LARGEST, DecompressionError, compress, decompress
from conformance.errors import ConformanceError, InfrastructureError, UsageError
from conformance.files import (
    describe_os_error,
    disk_error,
    read_regular,
    sync_file_system,
    sync_to_disk,
    write_atomically,
)

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from conformance.remote_cache.cache import RemoteCache


LARGE = 64 * 1024
"""Bytes from which a blob is compressed."""
HASH_LENGTH = 32
THREADS: Final = 8
"""Files that are synced at the same time."""
BATCH: Final = 256
"""Files above which syncing the whole file system is faster than syncing each file."""
_NAME: Final = re.compile(r"[0-9a-f]{32,64}")


ORIGIN: Final = "origin"
"""File in a folder of blobs with the URL of the shared cache that has the missing ones."""
REMOTE_CACHE: Final = "conformance.remote_cache.cache"
"""Imported late: few runs have a shared cache, and its library is an optional extra."""
BLOBS: Final = "blobs"
"""Folder of the blobs in the cache folder."""


class CorruptBlobError(ConformanceError):
    """A blob that is missing, or whose content does not match its name."""


class MissingBlobError(CorruptBlobError):
    """A blob that is missing."""


def hash_blob(data: bytes) -> str:
    """Return the name of a content: 32 hexadecimal digits of its SHA-256."""
    return hashlib.sha256(data).hexdigest()[:HASH_LENGTH]


def is_blob_name(text: str) -> bool:
    """Return whether a text may be the name of a blob."""
    return _NAME.fullmatch(text) is not None


class BlobStore:
    """A folder of blobs named by their hash; large ones as `<hash>.zst`.

    Blobs of records from a shared cache come when they are read, from the cache that the file
    `origin` names. Most of them are never read.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def put(self, data: bytes) -> str:
        """Store a content unless the store has it, undamaged.

        Args:
            data: Content to store.

        Returns:
            The hash of the content.

        Raises:
            InfrastructureError: If the disk refuses.
        """
        name = hash_blob(data)
        path = self._path(name, large=len(data) >= LARGE)
        # Read, not only looked up: a damaged blob of that name is replaced.
        if not self.is_intact(name):
            stored = compress(data) if len(data) >= LARGE else data
            write_atomically(path, stored)
        return name

    def is_intact(self, name: str) -> bool:
        """Return whether a blob is in the folder, undamaged."""
        try:
            self._read(name)
        except CorruptBlobError:
            return False
        return True

    def get(self, name: str) -> bytes:
        """Return a content by its hash; a missing one is fetched from the origin.

        Raises:
            CorruptBlobError: If it is missing or has another hash.
        """
        try:
            return self._read(name)
        except MissingBlobError:
            origin = self.read_origin()
            if not origin:
                raise
            return self._fetch(name, origin)

    def _read(self, name: str) -> bytes:
        path = self._find(name)
        try:
            data = read_regular(path, LARGEST)
            data = decompress(data) if path.suffix == ".zst" else data
        except FileNotFoundError as error:
            raise MissingBlobError(f"{path}: cannot be read: {describe_os_error(error)}") from None
        except OSError as error:
            raise CorruptBlobError(f"{path}: cannot be read: {describe_os_error(error)}") from None
        except DecompressionError as error:
            raise CorruptBlobError(f"{path}: cannot be read: {error}") from None
        if hash_blob(data) != name:
            raise CorruptBlobError(f"{path}: got content {hash_blob(data)}, expected {name}")
        return data

    def read_origin(self) -> str:
        """Return the URL of the shared cache with the missing blobs, empty for none."""
        try:
            return read_regular(self.folder / ORIGIN, 4096).decode("utf-8", "replace").strip()
        except OSError:
            return ""

    def write_origin(self, url: str) -> None:
        """Name the shared cache that has the missing blobs.

        Args:
            url: URL of the cache, without credentials; empty for none.

        Raises:
            InfrastructureError: If the disk refuses.
        """
        if url and url != self.read_origin():
            write_atomically(self.folder / ORIGIN, url.encode() + b"\n")

    def fetch_missing(self, names: Iterable[str]) -> None:
        """Fetch missing blobs from the origin together, which is faster than one by one.

        Those that cannot be fetched stay missing.

        Args:
            names: Hashes of the contents.
        """
        origin = self.read_origin()
        if not origin:
            return
        missing = [name for name in dict.fromkeys(names) if not self._find(name).exists()]
        cached = BlobStore(cache_location() / BLOBS)
        absent = [name for name in missing if not cached.has(name)]
        with contextlib.suppress(UsageError, InfrastructureError):
            for _, data in open_shared_cache(origin).get_contents(absent):
                cached.put(data)
            for name in missing:
                if cached.has(name):
                    self.adopt(name, cached)

    def has(self, name: str) -> bool:
        """Return whether a blob is in the folder, possibly damaged."""
        return self._find(name).exists()

    def _fetch(self, name: str, origin: str) -> bytes:
        """Return a content that only the local or the shared cache has, and store it.

        Raises:
            CorruptBlobError: If it cannot be fetched.
        """
        # First the local cache, which has what another run fetched.
        cached = BlobStore(cache_location() / BLOBS)
        with contextlib.suppress(CorruptBlobError, InfrastructureError):
            data = cached._read(name)
            self.adopt(name, cached)
            return data
        try:
            remote = open_shared_cache(origin)
            fetched = remote.get_content(name)
            problem = remote.failure or "has no intact copy of it"
        except UsageError as error:
            fetched, problem = None, str(error)
        if fetched is None:
            raise MissingBlobError(
                f"{self.folder / name}: not stored on this machine, and {origin}: {problem}; "
                "run its job again with --fresh"
            )
        # A run on a medium that is read-only can be read, too.
        with contextlib.suppress(InfrastructureError):
            cached.put(fetched)
            self.adopt(name, cached)
        return fetched

    def sync(self, names: Iterable[str]) -> None:
        """Wait until contents are durable, after which a record may name them.

        Missing blobs are skipped: their readers report them.

        Args:
            names: Hashes of the contents.

        Raises:
            InfrastructureError: If the disk refuses.
        """
        files = [path for name in names if (path := self._find(name)).exists()]
        try:
            if len(files) > BATCH:
                sync_file_system(self.folder)
            elif files:
                # In parallel, because a journaling file system commits all of them at once.
                with ThreadPoolExecutor(THREADS) as pool:
                    list(pool.map(sync_to_disk, [*files, self.folder]))
        except OSError as error:
            raise disk_error(self.folder, error) from None

    def drop_broken(self, names: Iterable[str]) -> None:
        """Remove damaged blobs, so that they are stored again."""
        for name in names:
            if not self.is_intact(name):
                self._find(name).unlink(missing_ok=True)

    def adopt(self, name: str, source: BlobStore, *, trusted: bool = True) -> None:
        """Copy a blob from another store, by a hard link if the file system allows it.

        Args:
            name: Hash of the blob.
            source: The other store.
            trusted: Whether to copy the blob without hashing its content.

        Raises:
            CorruptBlobError: If the name is malformed, or the blob is missing or damaged.
            InfrastructureError: If the disk refuses.
        """
        if not trusted:
            source.get(name)
        # A blob keeps the form that it has in the other store.
        for large in (False, True):
            path = self._path(name, large=large)
            if path.exists() or _link(source._path(name, large=large), path):
                return
        raise MissingBlobError(f"{source.folder / name}: missing")

    def _find(self, name: str) -> Path:
        plain = self._path(name, large=False)
        return plain if plain.exists() else self._path(name, large=True)

    def _path(self, name: str, *, large: bool) -> Path:
        # Names come from records, which are untrusted input: none may lead out of the folder.
        if not is_blob_name(name):
            raise CorruptBlobError(
                f"{self.folder}: got {name[:80]!r} as the name of an artifact, expected 32 to 64 "
                "hexadecimal digits"
            )
        return self.folder / (f"{name}.zst" if large else name)


def open_shared_cache(url: str, write: bool = False) -> RemoteCache:
    """Return the shared cache at a URL, and import its library only now.

    Args:
        url: URL of the cache.
        write: Whether entries are added.

    Raises:
        UsageError: If the URL is malformed, or its library is missing.
    """
    cache: RemoteCache = importlib.import_module(REMOTE_CACHE).open_remote_cache(url, write=write)
    return cache


def _link(source: Path, target: Path) -> bool:
    """Link a blob into another store; return whether it exists.

    Raises:
        CorruptBlobError: If the source is no regular file.
        InfrastructureError: If the disk refuses.
    """
    try:
        if not stat.S_ISREG(source.lstat().st_mode):  # a symbolic link would be linked itself
            raise CorruptBlobError(f"{source}: is no regular file, expected a blob")
    except OSError:
        return False
    try:
        try:
            os.link(source, target, follow_symlinks=False)
        except FileNotFoundError:
            if not source.exists():
                return False
            # The folder is made by the first blob, so that most links need one system call.
            target.parent.mkdir(parents=True, exist_ok=True)
            os.link(source, target, follow_symlinks=False)
    except FileExistsError:  # another process has stored the same content meanwhile
        return True
    except OSError:  # another file system
        try:
            write_atomically(target, read_regular(source))
        except OSError as error:
            raise disk_error(target, error) from None
    return True
