"""A content-addressed store of artifacts, compressed with zstd if they are large."""

from __future__ import annotations

import hashlib
import os
import re
import stat
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final

import zstandard

from conformance.errors import ConformanceError
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


LARGEST: Final = 2**30
"""Bytes of an artifact, and of anything that is decompressed."""
_UNKNOWN: Final = 2**64 - 1
"""Content size of a frame that does not contain it."""
_PIECE: Final = 2048
"""Compressed bytes per step of decompression; they expand to at most 64 MiB."""


class DecompressionError(ValueError):
    """Bytes that are no complete zstd frame, or a frame with too large a content."""


def compress(data: bytes) -> bytes:
    """Return a zstd frame that states the size of its content."""
    return zstandard.compress(data, 3)


def decompress(data: bytes, largest: int = LARGEST) -> bytes:
    """Return the content of a zstd frame.

    Args:
        data: Bytes of the frame.
        largest: Bytes that the content may have.

    Raises:
        DecompressionError: If it is damaged or cut, or its content is larger.
    """
    try:
        # Checked before anything is decompressed: a small frame can expand to any size.
        stated = zstandard.get_frame_parameters(data).content_size
        if stated == _UNKNOWN:
            return _decompress_stepwise(data, largest)
        if stated > largest:
            raise DecompressionError(_describe_limit(largest))
        return zstandard.ZstdDecompressor().decompress(data)
    except (zstandard.ZstdError, MemoryError) as error:
        raise DecompressionError(str(error) or "out of memory") from None


def _decompress_stepwise(data: bytes, largest: int) -> bytes:
    decompressor = zstandard.ZstdDecompressor().decompressobj()
    content = bytearray()
    for start in range(0, len(data), _PIECE):
        content += decompressor.decompress(data[start : start + _PIECE])
        if len(content) > largest:
            raise DecompressionError(_describe_limit(largest))
        if decompressor.eof:
            return bytes(content)
    raise DecompressionError("ends too early")


def _describe_limit(largest: int) -> str:
    return f"becomes more than {largest >> 20} MiB when decompressed, which is the limit"


LARGE = 64 * 1024
"""Bytes from which a blob is compressed."""
HASH_LENGTH = 32
THREADS: Final = 8
"""Files that are synced at the same time."""
BATCH: Final = 256
"""Files above which syncing the whole file system is faster than syncing each file."""
_NAME: Final = re.compile(r"[0-9a-f]{32,64}")


class CorruptBlobError(ConformanceError):
    """A blob that is missing, or whose content does not match its name."""


def hash_blob(data: bytes) -> str:
    """Return the name of a content: 32 hexadecimal digits of its SHA-256."""
    return hashlib.sha256(data).hexdigest()[:HASH_LENGTH]


class BlobStore:
    """A folder of blobs named by their hash; large ones as `<hash>.zst`."""

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
        if not self._holds(name):
            stored = compress(data) if len(data) >= LARGE else data
            write_atomically(path, stored)
        return name

    def _holds(self, name: str) -> bool:
        try:
            self.get(name)
        except CorruptBlobError:
            return False
        return True

    def get(self, name: str) -> bytes:
        """Return a content by its hash.

        Raises:
            CorruptBlobError: If it is missing or has another hash.
        """
        path = self._find(name)
        try:
            data = read_regular(path, LARGEST)
            data = decompress(data) if path.suffix == ".zst" else data
        except OSError as error:
            raise CorruptBlobError(f"{path}: cannot be read: {describe_os_error(error)}") from None
        except DecompressionError as error:
            raise CorruptBlobError(f"{path}: cannot be read: {error}") from None
        if hash_blob(data) != name:
            raise CorruptBlobError(f"{path}: got content {hash_blob(data)}, expected {name}")
        return data

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
            if not self._holds(name):
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
        raise CorruptBlobError(f"{source.folder / name}: missing")

    def _find(self, name: str) -> Path:
        plain = self._path(name, large=False)
        return plain if plain.exists() else self._path(name, large=True)

    def _path(self, name: str, *, large: bool) -> Path:
        # Names come from records, which are untrusted input: none may lead out of the folder.
        if not _NAME.fullmatch(name):
            raise CorruptBlobError(
                f"{self.folder}: got {name[:80]!r} as the name of an artifact, expected 32 to 64 "
                "hexadecimal digits"
            )
        return self.folder / (f"{name}.zst" if large else name)


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
