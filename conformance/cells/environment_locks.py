"""Environments that are in use: noted for later, and kept from being removed meanwhile."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SUFFIX = ".used"
_REFUSED = frozenset({errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOSPC, errno.EDQUOT})
PATIENCE = 1800.0
"""Seconds that making an environment is waited for."""
_LOOK_AGAIN = 0.05
"""Seconds between two looks at whether another has ended."""


@contextmanager
def hold_environment(folder: Path) -> Iterator[int]:
    """Hold an environment, as others may too, and note that it is used now.

    Args:
        folder: The environment, which need not be there yet.

    Yields:
        A descriptor; a process that inherits it holds the environment until it ends.

    Raises:
        OSError: If the folder above cannot be written.
    """
    mark = _mark(folder)
    mark.parent.mkdir(parents=True, exist_ok=True)
    descriptor = _hold(mark, folder)
    try:
        with contextlib.suppress(OSError):  # another user's: it is used all the same
            os.utime(mark)
        yield descriptor
    finally:
        os.close(descriptor)


def last_used(folder: Path) -> float | None:
    """Return when an environment was used last, in seconds since the epoch, None if never."""
    try:
        return _mark(folder).stat().st_mtime
    except OSError:
        return None


@contextmanager
def lock_unused(folder: Path) -> Iterator[bool]:
    """Keep others from beginning to use an environment.

    Args:
        folder: The environment.

    Yields:
        True when nobody uses it; else it must be left alone.

    Raises:
        OSError: If the folder above cannot be written.
    """
    before = last_used(folder)
    descriptor = os.open(_mark(folder), os.O_RDWR | os.O_CREAT, 0o666)
    try:
        if before is None:  # looking at it is no use of it
            os.utime(_mark(folder), (0, folder.stat().st_mtime))
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
    """Wait until nobody else makes a folder, and keep others from it.

    Args:
        folder: What is to be made.
        patience: Seconds to wait.

    Yields:
        A descriptor; a process that inherits it keeps others from the folder until it ends. So
        what a killed run had at work there is not disturbed.

    Raises:
        TimeoutError: If another makes it for too long.
        OSError: If the folder above cannot be written.
    """
    descriptor = os.open(folder.with_name(f"{folder.name}.lock"), os.O_RDWR | os.O_CREAT, 0o666)
    try:
        end = time.monotonic() + patience
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > end:
                    raise TimeoutError from None
                time.sleep(_LOOK_AGAIN)
            else:
                break
        yield descriptor
    finally:
        os.close(descriptor)


def remove_marks(folder: Path) -> None:
    """Remove the files beside a removed environment; called while it is `lock_unused`."""
    for path in (_mark(folder), folder.with_name(f"{folder.name}.lock")):
        path.unlink(missing_ok=True)


def _hold(mark: Path, folder: Path) -> int:
    while True:
        try:
            descriptor = os.open(mark, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError as error:
            if error.errno not in _REFUSED or not folder.is_dir():
                raise
            # An environment that is there serves from a cache that is full or read-only too.
            descriptor = os.open(mark if mark.exists() else folder, os.O_RDONLY)
            fcntl.flock(descriptor, fcntl.LOCK_SH)
            return descriptor
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        if mark.exists() and os.path.samestat(os.fstat(descriptor), mark.stat()):
            return descriptor
        os.close(descriptor)  # removed, with the environment, while it was waited for


def _mark(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}{SUFFIX}")
