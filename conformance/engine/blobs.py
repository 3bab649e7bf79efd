"""Content-addressed blobs: what jobs produced, each content once."""

from __future__ import annotations

import hashlib
import os
import shutil
from typing import TYPE_CHECKING

import zstandard

from conformance.errors import ConformanceError
from conformance.files import disk_error, said_by, write_atomically

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

LARGE = 64 * 1024
"""Bytes from which a blob is compressed."""
HASH_LENGTH = 32


class CorruptBlobError(ConformanceError):
    """A blob that is missing, or is not what its name says."""


def blob_hash(data: bytes) -> str:
    """Return the name of a content: 32 hexadecimal digits of its SHA-256."""
    return hashlib.sha256(data).hexdigest()[:HASH_LENGTH]


class BlobStore:
    """A folder of blobs named by their hash; large ones as `<hash>.zst`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def put(self, data: bytes) -> str:
        """Store a content, unless it is there already and whole.

        Args:
            data: The content.

        Returns:
            Its hash.

        Raises:
            InfrastructureError: If the disk refuses.
        """
        name = blob_hash(data)
        path = self._path(name, large=len(data) >= LARGE)
        if not self._holds(name):
            stored = zstandard.compress(data, 3) if len(data) >= LARGE else data
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
            CorruptBlobError: If it is missing or does not have that hash.
        """
        path = self._find(name)
        try:
            data = path.read_bytes()
            data = zstandard.decompress(data) if path.suffix == ".zst" else data
        except OSError as error:
            raise CorruptBlobError(f"{path}: cannot be read: {said_by(error)}") from None
        except zstandard.ZstdError as error:
            raise CorruptBlobError(f"{path}: cannot be read: {error}") from None
        if blob_hash(data) != name:
            raise CorruptBlobError(f"{path}: got content {blob_hash(data)}, expected {name}")
        return data

    def written(self, name: str) -> int:
        """Return when a content was written, in nanoseconds of the epoch.

        Raises:
            CorruptBlobError: If it is missing.
        """
        path = self._find(name)
        try:
            return path.stat().st_mtime_ns
        except OSError as error:
            raise CorruptBlobError(f"{path}: cannot be read: {said_by(error)}") from None

    def drop_broken(self, names: Iterable[str]) -> None:
        """Remove the blobs that are not what their names say, so that they are made anew."""
        for name in names:
            if not self._holds(name):
                self._find(name).unlink(missing_ok=True)

    def adopt(self, name: str, source: BlobStore) -> None:
        """Take a blob from another store, by a hard link where the file system allows it.

        Raises:
            CorruptBlobError: If the other store does not have it.
            InfrastructureError: If the disk refuses.
        """
        for large in (False, True):
            path = self._path(name, large=large)
            if path.exists() or _link(source._path(name, large=large), path):
                return
        raise CorruptBlobError(f"{source.folder / name}: missing")

    def _find(self, name: str) -> Path:
        plain = self._path(name, large=False)
        return plain if plain.exists() else self._path(name, large=True)

    def _path(self, name: str, *, large: bool) -> Path:
        return self.folder / (f"{name}.zst" if large else name)


def _link(source: Path, target: Path) -> bool:
    try:
        try:
            os.link(source, target)
        except FileNotFoundError:
            if not source.exists():
                return False
            target.parent.mkdir(parents=True, exist_ok=True)
            os.link(source, target)
    except FileExistsError:
        return True
    except OSError:  # another file system
        try:
            shutil.copyfile(source, target)
        except OSError as error:
            raise disk_error(target, error) from None
    return True
