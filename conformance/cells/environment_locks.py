"""Locks on environments: in use, being created, and the time of the last use."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from conformance.errors import InfrastructureError
from conformance.files import disk_error

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SUFFIX = ".used"
# Errors of a cache that is full, read-only or another user's.
_REFUSED = frozenset({errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOSPC, errno.EDQUOT})
PATIENCE = 1800.0
"""Seconds to wait for another process that creates an environment."""
_PAUSE = 0.05
"""Seconds between two attempts to lock."""


@contextmanager
def hold_environment(folder: Path) -> Iterator[int]:
    """Hold a shared lock on an environment, and record the time of its use.

    Args:
        folder: Environment, which need not exist yet.

    Yields:
        A descriptor; a process that inherits it holds the lock until it ends.

    Raises:
        OSError: If the parent folder cannot be written.
    """
    # Next to the folder, not in it: the folder may not exist yet, and creating it removes its
    # content.
    mark = _mark_path(folder)
    mark.parent.mkdir(parents=True, exist_ok=True)
    descriptor = _lock_mark(mark, folder)
    try:
        with contextlib.suppress(OSError):  # another user's: it can be used anyway
            os.utime(mark)
        yield descriptor
    finally:
        os.close(descriptor)


def read_last_use(folder: Path) -> float | None:
    """Return the time of an environment's last use, in seconds since the epoch, None if unused."""
    try:
        return _mark_path(folder).stat().st_mtime
    except OSError:
        return None


@contextmanager
def lock_unused(folder: Path) -> Iterator[bool]:
    """Lock an environment exclusively, unless a process uses it.

    Args:
        folder: Environment to lock.

    Yields:
        True if it is locked; False if it is in use.

    Raises:
        OSError: If the parent folder cannot be written.
    """
    before = read_last_use(folder)
    descriptor = os.open(_mark_path(folder), os.O_RDWR | os.O_CREAT, 0o666)
    try:
        if before is None:  # the new mark must not count as a use
            os.utime(_mark_path(folder), (0, folder.stat().st_mtime))
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
    finally:
        os.close(descriptor)


@contextmanager
def lock_creation(folder: Path, patience: float = PATIENCE) -> Iterator[int]:
    """Hold the exclusive right to create a folder.

    Args:
        folder: Folder to create.
        patience: Time to wait for another process, in seconds.

    Yields:
        A descriptor; a process that inherits it holds the lock until it ends. So the child
        processes of a killed run, which still write to the folder, are waited for.

    Raises:
        TimeoutError: If another process holds the lock for longer than that.
        OSError: If the parent folder cannot be written.
    """
    # A second file: the process that creates the folder, and those that wait for it, hold the mark
    # of its use meanwhile.
    descriptor = os.open(folder.with_name(f"{folder.name}.lock"), os.O_RDWR | os.O_CREAT, 0o666)
    try:
        # Polled: flock has no time limit, and an alarm would need the main thread.
        end = time.monotonic() + patience
        while True:
            try:
                # flock, not lockf: children that inherit the descriptor hold a lock of flock too.
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > end:
                    raise TimeoutError from None
                time.sleep(_PAUSE)
            else:
                break
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def provide_folder(folder: Path, patience: float = PATIENCE) -> Iterator[int]:
    """Hold the exclusive right to create a folder of the cache; see `lock_creation`.

    Args:
        folder: Folder to create; its parents are created.
        patience: Time to wait for another process, in seconds.

    Yields:
        The descriptor of the lock.

    Raises:
        InfrastructureError: If another process holds the lock for longer than that, or the disk
            refuses.
    """
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with lock_creation(folder, patience) as descriptor:
            yield descriptor
    except TimeoutError:
        raise InfrastructureError(f"{folder}.lock: held by another run for too long") from None
    except OSError as error:
        raise disk_error(folder, error) from error


def remove_marks(folder: Path) -> None:
    """Remove the lock files of a removed environment; call it within `lock_unused`."""
    for path in (_mark_path(folder), folder.with_name(f"{folder.name}.lock")):
        path.unlink(missing_ok=True)


def _lock_mark(mark: Path, folder: Path) -> int:
    while True:
        try:
            descriptor = os.open(mark, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError as error:
            if error.errno not in _REFUSED or not folder.is_dir():
                raise
            # An environment that exists can be used from a full or read-only cache too.
            descriptor = os.open(mark if mark.exists() else folder, os.O_RDONLY)
            fcntl.flock(descriptor, fcntl.LOCK_SH)
            return descriptor
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        if mark.exists() and os.path.samestat(os.fstat(descriptor), mark.stat()):
            return descriptor
        # The environment was removed while this process waited: retry with a new mark.
        os.close(descriptor)


def _mark_path(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}{SUFFIX}")
