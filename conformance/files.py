"""Atomic writes, reads of untrusted files, and the errors of a failing disk."""

from __future__ import annotations

import ctypes
import errno
import hashlib
import os
import secrets
import stat
from contextlib import contextmanager
from itertools import takewhile
from operator import itemgetter
from typing import TYPE_CHECKING, Any, BinaryIO

import msgspec

from conformance.errors import InfrastructureError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TEMPORARY = ".writing-"
"""Prefix of the names of files that are still being written."""
MALFORMED = (ValueError, RecursionError)
"""Errors of a decoder for malformed data; deep nesting is a RecursionError."""


def read_regular(path: Path, largest: int | None = None) -> bytes:
    """Return the content of a regular file, without following links or waiting for pipes.

    Args:
        path: Regular file, possibly of untrusted origin.
        largest: Maximum size in bytes; None is no limit.

    Raises:
        OSError: If it cannot be read, is a symbolic link or no regular file, or is too large.
    """
    try:
        # Without O_NONBLOCK, opening a pipe waits for its writer.
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise OSError(errno.ELOOP, "is a symbolic link, expected a regular file") from None
        raise
    try:
        found = os.fstat(descriptor)
        if stat.S_ISDIR(found.st_mode):  # `open` would raise it with another message
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if not stat.S_ISREG(found.st_mode):
            raise OSError(errno.EINVAL, "is no regular file")
        if largest is not None and found.st_size > largest:
            message = f"has {found.st_size} bytes, expected at most {largest}"
            raise OSError(errno.EFBIG, message)
        with open(descriptor, "rb", closefd=False) as file:
            return file.read()
    finally:
        os.close(descriptor)


def stamp_folder(folder: Path) -> str:
    """Return the hash of names, sizes and modification times of the files of a folder.

    Args:
        folder: The folder; a missing one has the stamp of an empty one.
    """
    try:
        with os.scandir(folder) as entries:
            files = sorted(((f.name, f.stat()) for f in entries if f.is_file()), key=itemgetter(0))
    except OSError:
        files = []
    listing = "\n".join(f"{name} {stat.st_size} {stat.st_mtime_ns}" for name, stat in files)
    return hashlib.sha256(listing.encode()).hexdigest()


def readable_json(data: Any) -> bytes:
    """Return data as indented JSON, without a final line break.

    Args:
        data: Any object that msgspec encodes.
    """
    return msgspec.json.format(msgspec.json.encode(data), indent=1)


def write_atomically(path: Path, data: bytes, *, durable: bool = False) -> None:
    """Write a file completely, or leave it unchanged.

    Args:
        path: File to write; missing folders are created.
        data: Content of the file.
        durable: Whether the file survives a loss of power after the call. It costs a wait for the
            disk, so it is for data that cannot be computed again.

    Raises:
        InfrastructureError: If the disk fails; the file then keeps its old content.
    """
    try:
        # Before mkdir, which makes them indistinguishable from others. Evaluated by the next line.
        created = takewhile(lambda folder: not folder.exists(), path.parents)
        to_sync = [path.parent, *(folder.parent for folder in created)] if durable else []
        path.parent.mkdir(parents=True, exist_ok=True)
        if not _try_unnamed_write(path, data, durable=durable):
            with temporary_file(path) as temporary, temporary.open("wb") as file:
                _write(file, data, durable=durable)
        # The parents of created folders too: without the folders' names the file is lost.
        for folder in to_sync:
            sync_to_disk(folder)
    except OSError as error:
        raise disk_error(path, error) from error


def _try_unnamed_write(path: Path, data: bytes, *, durable: bool) -> bool:
    """Write a file that has no name until it is complete, so that a killed process leaves no file.

    Returns:
        Whether the system and the file system support it.

    Raises:
        OSError: If the content cannot be written.
    """
    try:
        descriptor = os.open(path.parent, os.O_TMPFILE | os.O_WRONLY, 0o666)
    except (AttributeError, OSError):
        # macOS and some file systems have no O_TMPFILE. Any other problem is reported by the write
        # under a temporary name.
        return False
    with os.fdopen(descriptor, "wb") as file:
        _write(file, data, durable=durable)
        try:
            _link(descriptor, path)
        # linkat never replaces a file, but a rename does.
        except FileExistsError:
            with temporary_file(path) as temporary:
                _link(descriptor, temporary)
        except OSError:
            return False
    return True


def _write(file: BinaryIO, data: bytes, *, durable: bool) -> None:
    file.write(data)
    file.flush()
    if durable:
        os.fsync(file.fileno())


def sync_to_disk(path: Path) -> None:
    """Wait until a file's content, or the names in a folder, are on the disk.

    Raises:
        OSError: If the disk fails.
    """
    # Without O_NONBLOCK, opening a pipe waits for its writer.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_file_system(folder: Path) -> None:
    """Wait until all data written to the file system of a folder is on the disk.

    Raises:
        OSError: If the disk fails.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        # os.sync() waits for every disk and reports no error.
        if ctypes.CDLL(None, use_errno=True).syncfs(descriptor):
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
    finally:
        os.close(descriptor)


def _link(descriptor: int, path: Path) -> None:
    # Only with `src_dir_fd` does Python call linkat, which follows the link in /proc to the file.
    # link(2) would try to link the link itself.
    os.link(f"/proc/self/fd/{descriptor}", path, src_dir_fd=descriptor, follow_symlinks=True)


@contextmanager
def temporary_file(path: Path) -> Iterator[Path]:
    """Yield the name of a file that replaces another at the end, unless an error is raised.

    Args:
        path: File to replace.

    Raises:
        OSError: If the disk fails; the file then keeps its old content.
    """
    # In the same folder: a rename to another file system is a copy, and not atomic.
    temporary = path.with_name(f"{TEMPORARY}{os.getpid()}-{secrets.token_hex(4)}-{path.name}")
    try:
        yield temporary
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def describe_os_error(error: OSError) -> str:
    """Return the system's message for an error, in lower case as all messages are."""
    return (error.strerror or str(error)).lower()


def disk_error(path: Path, error: OSError) -> InfrastructureError:
    """Return the error to show for a file that cannot be written."""
    hint = "free some space" if error.errno == errno.ENOSPC else "check the permissions"
    return InfrastructureError(
        f"{path}: cannot be written: {describe_os_error(error)}; {hint} and try again"
    )
