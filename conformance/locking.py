"""One writer at a time for folders and files that are read, changed and written again."""

from __future__ import annotations

import errno
import fcntl
import os
import time
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Final

from conformance.errors import InfrastructureError
from conformance.files import disk_error, said_by

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

PATIENCE: Final = 600.0
"""Seconds to wait for another writer; none takes that long."""
QUIET: Final = 1.0
"""Seconds to wait before the user is informed."""
SUFFIX: Final = ".held"
_PAUSE: Final = 0.05
_HELD: Final = {errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES}


@contextmanager
def locked(
    folders: Iterable[Path],
    inform: Callable[[str], None],
    patience: float = PATIENCE,
) -> Iterator[None]:
    """Hold the right to change what is below some folders.

    Whoever reads files to write them holds it from the first read to the last write; otherwise
    the second of two writers overwrites what the first one wrote. The lock is on the folder
    itself: it leaves no file in the user's repository, and the system releases it when the
    process is killed.

    Args:
        folders: The folders, for instance those that hold the families; made if need be, for
            the first goldens of a list of functions have none yet.
        inform: Receives one line if another process holds a lock.
        patience: How long to wait for each, in seconds.

    Raises:
        InfrastructureError: If a lock cannot be had.
    """
    with ExitStack() as held:
        # In one order everywhere, so that two processes never wait for each other.
        for folder in sorted({folder.resolve() for folder in folders}):
            descriptor = _opened(folder)
            held.callback(os.close, descriptor)  # which releases the lock
            _acquire(folder, descriptor, inform, patience)
        yield


@contextmanager
def locked_file(
    file: Path,
    inform: Callable[[str], None],
    patience: float = PATIENCE,
) -> Iterator[None]:
    """Hold the right to change one file of a folder that others lock for longer.

    A run holds its directory to its end, and a review of it writes there meanwhile. The lock is on
    a file beside it that stays: the file itself is replaced whenever it is written.

    Args:
        file: The file, which need not exist.
        inform: Receives one line if another process holds the lock.
        patience: How long to wait, in seconds.

    Raises:
        InfrastructureError: If the lock cannot be had.
    """
    mark = file.with_name(f".{file.name}{SUFFIX}")
    try:
        mark.parent.mkdir(parents=True, exist_ok=True)
        # The folder may come from elsewhere: no link is followed, and no pipe is waited for.
        descriptor = os.open(mark, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise disk_error(mark, error) from None
    try:
        _acquire(file, descriptor, inform, patience)
        yield
    finally:
        os.close(descriptor)


def _opened(folder: Path) -> int:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise disk_error(folder, error) from None
    try:
        return os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise InfrastructureError(f"{folder}: cannot be locked: {said_by(error)}") from None


def _acquire(path: Path, descriptor: int, inform: Callable[[str], None], patience: float) -> None:
    start = time.monotonic()
    informed = False
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in _HELD:
                raise InfrastructureError(
                    f"{path}: cannot be locked: {said_by(error)}; keep it on a file system "
                    "with locks"
                ) from None
        else:
            return
        waited = time.monotonic() - start
        if waited > patience:
            raise InfrastructureError(
                f"{path}: another process has been changing it for {waited:.0f} s; "
                "wait until it ends, and try again"
            )
        if waited > QUIET and not informed:
            inform(f"{path}: waiting for another process that changes it")
            informed = True
        time.sleep(_PAUSE)
