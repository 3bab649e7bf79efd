"""Locks against concurrent writers, for folders and files that are read and written back."""

from __future__ import annotations

import errno
import fcntl
import os
import time
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Final

from conformance.errors import InfrastructureError
from conformance.files import describe_os_error, disk_error

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

PATIENCE: Final = 600.0
"""Seconds to wait for another writer; no command writes for that long."""
QUIET: Final = 1.0
"""Seconds to wait before the user is informed."""
SUFFIX: Final = ".held"
_PAUSE: Final = 0.05
# NFS emulates flock with fcntl locks, which report EACCES or EAGAIN.
_LOCKED_BY_OTHERS: Final = {errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES}


@contextmanager
def lock_folders(
    folders: Iterable[Path],
    inform: Callable[[str], None],
    patience: float = PATIENCE,
) -> Iterator[None]:
    """Lock folders against other writers.

    A caller that reads files in order to write them holds the lock from the first read to the last
    write. Otherwise the second of two writers overwrites the changes of the first. The lock is on
    the folder itself: it leaves no file in the user's repository, and the system releases it when
    the process is killed.

    Args:
        folders: Folders to lock, e.g. those of the families. Missing folders are created: the first
            goldens of a list of functions have no folder yet.
        inform: Receives one line if another process holds a lock.
        patience: Time to wait for each lock, in seconds.

    Raises:
        InfrastructureError: If a lock cannot be acquired.
    """
    with ExitStack() as stack:
        # Every process locks in the same order, so two of them never wait for each other.
        for folder in sorted({folder.resolve() for folder in folders}):
            try:
                folder.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise disk_error(folder, error) from None
            try:
                descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            except OSError as error:
                raise InfrastructureError(
                    f"{folder}: cannot be locked: {describe_os_error(error)}"
                ) from None
            stack.callback(os.close, descriptor)  # which releases the lock
            _acquire(folder, descriptor, inform, patience)
        yield


@contextmanager
def lock_file(
    file: Path,
    inform: Callable[[str], None],
    patience: float = PATIENCE,
) -> Iterator[None]:
    """Lock one file of a folder that another process may have locked for longer.

    A run holds the lock of its directory until it ends, and a review of it writes to the directory
    in the meantime. The lock is on a second file next to the first, because each write replaces the
    first with a new inode.

    Args:
        file: File to lock, which need not exist.
        inform: Receives one line if another process holds the lock.
        patience: Time to wait, in seconds.

    Raises:
        InfrastructureError: If the lock cannot be acquired.
    """
    mark = file.with_name(f".{file.name}{SUFFIX}")
    try:
        mark.parent.mkdir(parents=True, exist_ok=True)
        # A run directory may come from another machine: a link planted in it is not followed.
        descriptor = os.open(mark, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise disk_error(mark, error) from None
    try:
        _acquire(file, descriptor, inform, patience)
        yield
    finally:
        os.close(descriptor)


def _acquire(path: Path, descriptor: int, inform: Callable[[str], None], patience: float) -> None:
    start = time.monotonic()
    informed = False
    while True:
        try:
            # Not waiting in flock: the user is informed meanwhile, and Ctrl-C is handled at once.
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in _LOCKED_BY_OTHERS:
                raise InfrastructureError(
                    f"{path}: cannot be locked: {describe_os_error(error)}; "
                    "keep it on a file system with locks"
                ) from None
        else:
            return
        waited = time.monotonic() - start
        if waited > patience:
            raise InfrastructureError(
                f"{path}: another process has been changing it for {waited:.0f} s; "
                "wait until it ends, and try again"
            )
        # A usual write is over before: a line about it would only be noise.
        if waited > QUIET and not informed:
            inform(f"{path}: waiting for another process that changes it")
            informed = True
        time.sleep(_PAUSE)
