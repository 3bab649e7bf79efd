"""Temporary folders: one place that makes them, so that none outlives its owner for long.

Each is locked by the process that made it. A process that is killed with `kill -9` releases the
lock, and the next one that makes a temporary folder beside it removes what nobody holds.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

PREFIX: Final = "conformance-tmp-"
"""Beginning of the names of temporary folders that are locked by their owner."""

TRIES: Final = 3
"""Folders to make until one is locked."""


class Scratch:
    """A temporary folder, locked until it is closed or its owner ends.

    Args:
        purpose: Part of its name.
        parent: Folder to make it in; the system's folder of temporary files by default.

    Attributes:
        path: The folder.

    Raises:
        OSError: If the disk refuses.
    """

    def __init__(self, purpose: str, parent: Path | None = None) -> None:
        parent = parent or Path(tempfile.gettempdir())
        _swept_once(parent)
        for _ in range(TRIES):
            self.path = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{purpose}-", dir=parent))
            self._lock = _locked(self.path, wait=True)
            if self._lock is not None:
                return
            # Another process took it for an abandoned one, or this file system has no locks: then
            # nobody else can lock the folder either, and it stays as it is.

    def close(self) -> None:
        """Remove the folder and release the lock; a second call does nothing."""
        lock, self._lock = self._lock, None
        shutil.rmtree(self.path, ignore_errors=True)
        if lock is not None:
            os.close(lock)


@contextmanager
def temporary_folder(purpose: str, parent: Path | None = None) -> Iterator[Path]:
    """Make a temporary folder, removed at the end; see `Scratch`.

    Args:
        purpose: Part of its name.
        parent: Folder to make it in; the system's folder of temporary files by default.

    Yields:
        The folder.
    """
    scratch = Scratch(purpose, parent)
    try:
        yield scratch.path
    finally:
        scratch.close()


def sweep(parent: Path) -> None:
    """Remove temporary folders whose owners have ended.

    Args:
        parent: Folder that they are in.
    """
    for path in parent.glob(f"{PREFIX}*"):
        lock = _locked(path, wait=False)
        if lock is not None:
            shutil.rmtree(path, ignore_errors=True)
            os.close(lock)


@cache
def _swept_once(parent: Path) -> None:
    sweep(parent)


def _locked(path: Path, *, wait: bool) -> int | None:
    """Lock a folder; return the descriptor, None where another holds it or it is not ours."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:  # removed meanwhile, no folder, or another user's
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        own = os.fstat(descriptor)
        if own.st_uid == os.getuid() and os.path.samestat(own, os.stat(path)):  # noqa: PTH116
            return descriptor
    except OSError:  # held, removed, or a file system without locks
        pass
    os.close(descriptor)
    return None
