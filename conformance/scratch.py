"""Temporary folders that are removed even if their owner is killed.

The process that creates a folder locks it. The lock is released when the process ends, also by
`kill -9`. The next process that creates a temporary folder in the same parent removes those that
are not locked.
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
"""Prefix of the names of temporary folders that are locked by their owner."""
TRIES: Final = 3
"""Number of folders to create until one can be locked."""


class Scratch:
    """A temporary folder, locked until it is closed or its owner ends.

    Args:
        purpose: Part of the folder's name.
        parent: Parent folder; the system's folder of temporary files by default.

    Attributes:
        path: Path of the temporary folder.

    Raises:
        OSError: If the folder cannot be created.
    """

    def __init__(self, purpose: str, parent: Path | None = None) -> None:
        parent = parent or Path(tempfile.gettempdir())
        _sweep_once(parent)
        for _ in range(TRIES):
            self.path = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{purpose}-", dir=parent))
            self._lock = _try_lock(self.path, wait=True)
            if self._lock is not None:
                return
            # Either another process swept the folder between mkdtemp and the lock, or the file
            # system has no locks. In the second case no process can lock and remove the folder, so
            # the last one is safe to use without a lock.

    def close(self) -> None:
        """Remove the folder and release the lock; a second call does nothing."""
        lock, self._lock = self._lock, None
        # Removed while still locked, so that no sweep removes it at the same time.
        shutil.rmtree(self.path, ignore_errors=True)
        if lock is not None:
            os.close(lock)


@contextmanager
def temporary_folder(purpose: str, parent: Path | None = None) -> Iterator[Path]:
    """Create a temporary folder and remove it at the end; see `Scratch`.

    Args:
        purpose: Part of the folder's name.
        parent: Parent folder; the system's folder of temporary files by default.

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
        parent: Parent folder.
    """
    for path in parent.glob(f"{PREFIX}*"):
        lock = _try_lock(path, wait=False)
        if lock is not None:
            shutil.rmtree(path, ignore_errors=True)
            os.close(lock)


_sweep_once = cache(sweep)


def _try_lock(path: Path, *, wait: bool) -> int | None:
    """Lock a folder; return the descriptor, None if it is locked, removed or another user's."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:  # removed in the meantime, not a folder, or another user's
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        locked = os.fstat(descriptor)
        # The lock may have been granted only after the folder was removed or replaced.
        if locked.st_uid == os.getuid() and os.path.samestat(locked, path.stat()):
            return descriptor
    except OSError:  # locked, removed, or a file system without locks
        pass
    os.close(descriptor)
    return None
