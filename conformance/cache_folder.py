"""The cache folder, and its entries: each carries a digest of its content, and none can end a run.

A cache is a convenience. An entry that was damaged is a miss, and a folder that is full or
read-only only makes the next run slower: the log says so once.
"""

from __future__ import annotations

import hashlib
import logging
import os
import tempfile
from pathlib import Path
from typing import Final

import platformdirs

from conformance.errors import ConformanceError, InfrastructureError
from conformance.files import said_by, write_atomically

_LOG: Final = logging.getLogger("conformance.cache")
_DIGEST: Final = 64
"""Hexadecimal digits of a digest; a line break follows, then the content."""
_noted: set[tuple[Path, str]] = set()
VARIABLE = "CONFORMANCE_CACHE"


class CacheFolder:
    """A folder of the cache.

    Args:
        folder: The folder, which need not exist.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def read(self, path: Path) -> bytes | None:
        """Return the content of an entry.

        Args:
            path: Its file, in the folder.

        Returns:
            The content as it was written; None if there is none, or its digest does not match.
        """
        try:
            data = path.read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError:
            self.report_damage(path)
            return None
        digest, content = data[:_DIGEST], data[_DIGEST + 1 :]
        if digest != _digest(path, content):
            self.report_damage(path)
            return None
        return content

    def write(self, path: Path, content: bytes) -> bool:
        """Write an entry.

        Args:
            path: Its file, in the folder.
            content: Its content.

        Returns:
            Whether it was written.
        """
        try:
            write_atomically(path, _digest(path, content) + b"\n" + content)
        except InfrastructureError as error:
            self.report_unwritable(error)
            return False
        return True

    def report_damage(self, what: Path | ConformanceError) -> None:
        """Log that an entry, or a content that it names, is damaged, once for the folder.

        Args:
            what: The entry, or what is wrong with the content.
        """
        self._report("damaged", f"{what}: damaged cache entry, ignored; its content is made again")

    def report_unwritable(self, error: InfrastructureError) -> None:
        """Log that the folder cannot be written, once."""
        self._report("unwritable", f"{error}; the run goes on, its results are not cached")

    def _report(self, kind: str, message: str) -> None:
        if (self.folder, kind) not in _noted:
            _noted.add((self.folder, kind))
            _LOG.warning("note: %s", message)


def _digest(path: Path, content: bytes) -> bytes:
    # With the name: an entry that was copied over another one is as wrong as a damaged one.
    return hashlib.sha256(path.name.encode() + b"\0" + content).hexdigest().encode()


def cache_location() -> Path:
    """Return the cache folder, which may not exist: `$CONFORMANCE_CACHE`, else the user's."""
    chosen = os.environ.get(VARIABLE)
    root = Path(chosen).expanduser() if chosen else platformdirs.user_cache_path("jax-conformance")
    return root.absolute()


def cache_root() -> Path:
    """Return the cache folder, made if need be.

    Raises:
        InfrastructureError: If files cannot be written there.
    """
    root = cache_location()
    try:
        root.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=root) as probe:
            probe.write(b"x")
    except OSError as error:
        raise InfrastructureError(
            f"cache {root}: cannot be written: {said_by(error)}; "
            f"set {VARIABLE} to a folder that can be"
        ) from error
    return root
