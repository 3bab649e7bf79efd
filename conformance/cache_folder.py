"""The cache folder and its entries, each with a digest of its content.

A problem of the cache never ends a run. A damaged entry is a cache miss. A folder that is full or
read-only only makes the next run slower, and a warning is logged once.
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
from conformance.files import describe_os_error, write_atomically

_LOG: Final = logging.getLogger("conformance.cache")
_DIGEST: Final = 64
"""Length of the hexadecimal digest of an entry; a line break and the content follow."""
# For the whole process: many objects are made for one folder, and one note is enough.
_reported: set[tuple[Path, str]] = set()
VARIABLE = "CONFORMANCE_CACHE"
SHARED_URL = "CONFORMANCE_CACHE_URL"
"""Variable with the URL of the shared cache, which `--cache` sets for its command."""
SHARED_WRITE = "CONFORMANCE_CACHE_WRITE"
"""Variable that is not 0 if results are added to the shared cache, see `--cache-write`."""


class CacheFolder:
    """A folder of the cache.

    Args:
        folder: Path, which need not exist.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def read(self, path: Path) -> bytes | None:
        """Return the content of an entry.

        Args:
            path: File of the entry, in the folder.

        Returns:
            The content; None if the entry does not exist or its digest does not match.
        """
        try:
            data = path.read_bytes()
        # A miss, not damage: a file in place of the folder is reported when an entry is written.
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError:
            self.report_damage(path)
            return None
        digest, content = data[:_DIGEST], data[_DIGEST + 1 :]
        if digest != _make_digest(path, content):
            self.report_damage(path)
            return None
        return content

    def write(self, path: Path, content: bytes) -> bool:
        """Write an entry.

        Args:
            path: File of the entry, in the folder.
            content: Content of the entry.

        Returns:
            Whether it was written.
        """
        try:
            write_atomically(path, _make_digest(path, content) + b"\n" + content)
        except InfrastructureError as error:
            self.report_unwritable(error)
            return False
        return True

    def report_damage(self, problem: Path | ConformanceError) -> None:
        """Log that an entry, or a file that it refers to, is damaged; once per folder.

        Args:
            problem: File of the entry, or an error that describes the damage.
        """
        self._report("damaged", f"{problem}: damaged cache entry, ignored; it is written again")

    def report_unwritable(self, error: InfrastructureError) -> None:
        """Log that the folder cannot be written; once per folder."""
        self._report("unwritable", f"{error}; the run continues, its results are not cached")

    def _report(self, kind: str, message: str) -> None:
        if (self.folder, kind) not in _reported:
            _reported.add((self.folder, kind))
            _LOG.warning("note: %s", message)


def _make_digest(path: Path, content: bytes) -> bytes:
    # The name is hashed too: an entry copied over another one has a valid digest of its content
    # alone, and the wrong content.
    return hashlib.sha256(path.name.encode() + b"\0" + content).hexdigest().encode()


def cache_location() -> Path:
    """Return the cache folder, which may not exist: `$CONFORMANCE_CACHE` or the user's."""
    chosen = os.environ.get(VARIABLE)
    root = Path(chosen).expanduser() if chosen else platformdirs.user_cache_path("jax-conformance")
    return root.absolute()


def cache_root() -> Path:
    """Return the cache folder, created if missing.

    Raises:
        InfrastructureError: If files cannot be written to it.
    """
    root = cache_location()
    try:
        root.mkdir(parents=True, exist_ok=True)
        # A full disk admits an empty file: only a write shows that there is room.
        with tempfile.TemporaryFile(dir=root) as probe:
            probe.write(b"x")
    except OSError as error:
        raise InfrastructureError(
            f"cache {root}: cannot be written: {describe_os_error(error)}; "
            f"set {VARIABLE} to a writable folder"
        ) from error
    return root
